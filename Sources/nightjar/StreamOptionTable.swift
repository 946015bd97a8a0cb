import Settings

extension StreamCommand {
  /// The options that a configuration file and the environment may have: all of the command line but `config`, and but those
  /// that are for tests. A test compares it with what the parser of the command line knows.
  static let optionTable = OptionTable([
    .init("control", .text, .box),
    .init("rtsp", .optionalText, .box),
    .init("rtsps", .optionalText, .box),
    .init("users", .text, .box),
    .init("tls-cert", .text, .box),
    .init("tls-key", .text, .box),
    .init("rtsps-suite", .text, .box),
    .init("require-encryption", .flag, .box),
    .init("rtsp-sessions", .integer, .box),
    .init("announce", .invertibleFlag, .box),
    .init("https", .optionalText, .box),
    .init("tokens", .text, .box),
    .init("http", .optionalText, .box),
    .init("duration", .number, .box),
    .init("stats-json", .text, .box),
    .init("trace", .text, .box),
    .init("trace-limit", .number, .box),
    .init("lock-memory", .flag, .box),

    .init("name", .text, .camera(isShared: false)),
    .init("announce-name", .text, .camera(isShared: false)),
    .init("source", .text, .camera(isShared: false)),
    .init("size", .text, .camera(isShared: true)),
    .init("fps", .number, .camera(isShared: true)),
    .init("format", .text, .camera(isShared: true)),
    .init("wait", .flag, .camera(isShared: true)),
    .init("on-loss", .text, .camera(isShared: true)),
    .init("rate", .text, .camera(isShared: true)),
    .init("loop", .integer, .camera(isShared: true)),
    .init("orientation", .integer, .camera(isShared: true)),
    .init("mirror", .flag, .camera(isShared: true)),
    .init("facing", .text, .camera(isShared: true)),
    .init("controls", .table, .camera(isShared: true)),
    .init("sensor-lock", .flag, .camera(isShared: true)),
    .init("power-line", .integer, .camera(isShared: true)),
    .init("night", .table, .camera(isShared: true)),
    .init("night-controls", .table, .camera(isShared: true)),
    .init("bitrate", .number, .camera(isShared: true)),
    .init("preset", .text, .camera(isShared: true)),
    .init("encoder", .text, .camera(isShared: true)),
    .init("rate-control", .text, .camera(isShared: true)),
    .init("quantizer", .integer, .camera(isShared: true)),
    .init("buffer", .number, .camera(isShared: true)),
    .init("keyframe-interval", .number, .camera(isShared: true)),
    .init("profile", .text, .camera(isShared: true)),
    .init("slices", .integer, .camera(isShared: true)),
    .init("slice-size", .integer, .camera(isShared: true)),
    .init("intra-refresh", .flag, .camera(isShared: true)),
    .init("threads", .integer, .camera(isShared: true)),
    .init("lookahead", .integer, .camera(isShared: true)),
    .init("x264-preset", .text, .camera(isShared: true)),
    .init("vaapi-device", .text, .camera(isShared: true)),
    .init("vaapi-quality", .integer, .camera(isShared: true)),
    .init("vaapi-low-power", .flag, .camera(isShared: true)),
    .init("hang-limit", .integer, .camera(isShared: true)),
    .init("no-standby", .flag, .camera(isShared: true)),
    .init("thermal", .text, .camera(isShared: true)),
    .init("load-adaptation", .invertibleFlag, .camera(isShared: true)),
    .init("realtime", .text, .camera(isShared: true)),
    .init("cpus", .text, .camera(isShared: true)),
    .init("without", .list, .camera(isShared: true)),
    .init("to", .list, .camera(isShared: false)),
    .init("pacing", .number, .camera(isShared: true)),
    .init("sdp", .text, .camera(isShared: false)),
    .init("rtsp-multicast", .text, .camera(isShared: false)),
    .init("always-encode", .flag, .camera(isShared: true)),
  ])
}

extension StreamCommand {
  /// The options of a camera that change in a stream that goes on; any other needs another pipeline.
  static let liveOptions: Set = [
    "bitrate", "to", "sdp", "orientation", "mirror", "facing", "thermal", "load-adaptation", "rtsp-multicast",
    "controls", "sensor-lock", "power-line", "night", "night-controls", "announce-name",
  ]
  /// The options of the box that are taken when the program starts, and not by a reload.
  static let startOptions: Set = ["control", "duration", "stats-json", "trace", "trace-limit", "lock-memory"]
}
