/// The settings of a camera, by the names of their options.
package enum CameraSetting: String, CaseIterable, Hashable, Sendable {
  case name
  case announcedName = "announce-name"
  case source
  case size
  case fps
  case format
  case wait
  case onLoss = "on-loss"
  case rate
  case loop
  case orientation
  case mirror
  case facing
  case sysfs
  case udev
  case controls
  case sensorLock = "sensor-lock"
  case powerLine = "power-line"
  case night
  case nightControls = "night-controls"
  case bitrate
  case bitrateFloor = "bitrate-floor"
  case preset
  case codec
  case encoder
  case rateControl = "rate-control"
  case quantizer
  case buffer
  case keyFrameInterval = "keyframe-interval"
  case profile
  case slices
  case sliceSize = "slice-size"
  case intraRefresh = "intra-refresh"
  case threads
  case lookahead
  case x264Preset = "x264-preset"
  case vaapiDevice = "vaapi-device"
  case vaapiQuality = "vaapi-quality"
  case vaapiLowPower = "vaapi-low-power"
  case hangLimit = "hang-limit"
  case noStandby = "no-standby"
  case thermal
  case loadAdaptation = "load-adaptation"
  case realTime = "realtime"
  case processors = "cpus"
  case without
  case to
  case pacing
  case sdp
  case audio
  case audioBitrate = "audio-bitrate"
  case audioGain = "audio-gain"
  case audioChannels = "audio-channels"
  case audioHighPass = "audio-high-pass"
  case noise
  case crying
  case movement
  case movementMask = "movement-mask"
  case group = "rtsp-multicast"
  case alwaysEncode = "always-encode"
}

/// The settings of the appliance, by the names of their options.
package enum ApplianceSetting: String, CaseIterable, Hashable, Sendable {
  case control
  case rtsp
  case rtsps
  case users
  case certificate = "tls-cert"
  case key = "tls-key"
  case suite = "rtsps-suite"
  case requireEncryption = "require-encryption"
  case sessions = "rtsp-sessions"
  case announce
  case https
  case tokens
  case webrtcPort = "webrtc-port"
  case webrtcAddress = "webrtc-address"
  case http
  case eventsFile = "events-file"
  case eventPictures = "event-pictures"
  case quietHours = "quiet-hours"
  case webPush = "web-push"
  case webPushContact = "web-push-contact"
  case webhook
  case webhookKey = "webhook-key"
  case webhookPrivate = "webhook-private"
  case eventCommand = "event-command"
  case mqtt
  case mqttCA = "mqtt-ca"
  case mqttLogin = "mqtt-login"
  case mqttPrefix = "mqtt-prefix"
  case mqttDiscovery = "mqtt-discovery"
  case mqttSnapshots = "mqtt-snapshots"
  case duration
  case statistics = "stats-json"
  case trace
  case traceLimit = "trace-limit"
  case lockMemory = "lock-memory"
  case cpuBudget = "cpu-budget"

  /// `true` if the setting applies at the start of the program, and not at a reload.
  package var isForStart: Bool {
    switch self {
    case .control, .eventsFile, .duration, .statistics, .trace, .traceLimit, .lockMemory, .cpuBudget: true
    default: false
    }
  }
}

/// A difference between two configurations of a camera.
package enum CameraChange: Hashable, Sendable {
  case setting(CameraSetting)
  /// The RTSP server begins or ends, which decides if the encoder may rest.
  case service

  /// The name for people: the option's.
  package var name: String {
    switch self {
    case .setting(let setting): setting.rawValue
    case .service: "rtsp"
    }
  }

  /// `true` if the stream goes on through the change. Any other change needs another pipeline.
  package var isLive: Bool {
    guard case .setting(let setting) = self else { return false }
    return switch setting {
    case .bitrate, .bitrateFloor, .to, .sdp, .orientation, .mirror, .facing, .thermal, .loadAdaptation, .group,
      .controls, .sensorLock, .powerLine, .night, .nightControls, .announcedName, .audioGain:
      true
    default: false
    }
  }
}

extension Set<CameraChange> {
  /// `true` if the picture is to have another orientation.
  var changesOrientation: Bool { contains(.setting(.orientation)) || contains(.setting(.mirror)) }
}
