import Appliance
public import ArgumentParser
public import Encoding
public import Media

/// The options for encoding.
struct EncoderOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The codec: h264, or hevc (H.265).",
      discussion: """
        At low bitrates, HEVC needs less bitrate than H.264 for the same picture; at high bitrates it may need more. \
        Without hardware, HEVC takes several times the processor time. Fewer players and browsers show HEVC: a browser \
        gets it only if it offers H265. A picture has one slice; x265 encodes it with one thread and without lookahead.
        """))
  var codec = VideoCodec.h264

  @Option(
    help: ArgumentHelp(
      "The encoder: auto, vaapi, x264, x265, or camera (the camera's own H.264).",
      discussion: """
        auto uses VA-API hardware, and x264, or x265 for HEVC, if there is no such hardware or it fails. vaapi, x264 and \
        x265 have no fallback. \
        camera passes the camera's own H.264 on, which takes a small part of the CPU time. nightjar opens the camera in \
        another format and encodes as with auto if the picture is rotated, if a viewer gets JPEG pictures, or if viewers \
        cannot show the camera's H.264. It also encodes the placeholder while the camera is away.
        """))
  var encoder = EncoderChoice.auto

  @Option(
    help: ArgumentHelp(
      "The purpose of the stream.",
      discussion: """
        A preset sets values for the options below; each option overrides it. ultra-low-latency has four slices and \
        frames of nearly one size; each slice leaves as soon as x264 has coded it. With x264, the transcoding presets \
        look ahead and delay the picture by 10 and 40 frames.
        """))
  var preset = EncoderPreset.liveCapture

  @Option(
    help: ArgumentHelp(
      "Bits per second, as in 2.5M or 800k; auto depends on size and rate (3M for 1280x720 at 30).", valueName: "rate"))
  var bitrate: String?

  @Option(
    help: ArgumentHelp(
      "The least bits per second of full pictures for viewers on weak networks, as in 300k; auto is a third of the bitrate.",
      discussion: """
        The bitrate follows the slowest viewer's network between this and --bitrate. A viewer whose network takes less \
        gets pictures of half the width and height, with at most a third of the bitrate. Where there are none, as with \
        --encoder camera, auto is a twentieth, and such a viewer loses pictures. Nobody else does.
        """, valueName: "rate"))
  var bitrateFloor: String?

  @Option(
    help: "The rate control: cbr (constant bitrate), vbr (variable, the bitrate on average), cqp (constant quality).")
  var rateControl: CameraEncoding.RateControlMode?

  @Option(
    help: ArgumentHelp("The quality for cqp: 1 (best) to 51; the default is 26.", valueName: "number"))
  var quantizer: String?

  @Option(
    help: ArgumentHelp(
      "The most of the stream that one frame may take, as in 500ms: smaller is smoother, larger is sharper.",
      valueName: "time"))
  var buffer: String?

  @Option(
    help: ArgumentHelp("The longest time from one key frame to the next, as in 2s or 500ms.", valueName: "time"))
  var keyframeInterval: String?

  @Option(
    help: ArgumentHelp(
      "The H.264 profile: baseline (every decoder accepts it), main or high (better quality per bit).",
      discussion: """
        The default of live-capture is high. With --https or --http, which serve browsers, and with a named \
        --x264-preset, it is baseline. x264's preset ultrafast uses nothing that main and high add.
        """))
  var profile: H264Profile?

  @Option(
    help: ArgumentHelp(
      "The slices of a picture. With more slices, a lost packet costs less of the picture.",
      discussion: "Slices leave together; only with --preset ultra-low-latency they leave one by one.",
      valueName: "count"))
  var slices: String?

  @Option(
    help: ArgumentHelp(
      "x264: the largest slice in bytes, instead of --slices; mtu fits each slice into one packet.",
      discussion: """
        A lost packet then costs one slice. mtu follows the smallest packets of the destinations and of RTSP. VA-API \
        has no such slices: auto then uses x264.
        """, valueName: "bytes"))
  var sliceSize: String?

  @Flag(
    help: ArgumentHelp(
      "x264: refresh the picture column by column within --keyframe-interval, without bursts of key frames.",
      discussion: """
        Key frames come at the start, after a rotation or a fail-over, and when a viewer requests one. A viewer that \
        cannot request one, as in a multicast group, sees a whole picture after at most twice the interval. The \
        interval counts frames of the camera's full rate. VA-API cannot do this: auto then uses x264.
        """))
  var intraRefresh = false

  @Option(
    help: ArgumentHelp(
      "x264: threads, auto or a number; each adds a slice.",
      discussion: """
        auto is one for each 1080p30 of pixels. With --x264-preset auto, nightjar also tries two where auto is one, for \
        pictures of one slice from 1280x720 on. It keeps them while they bring a picture's last packet forward and the \
        program keeps --cpu-budget.
        """, valueName: "count"))
  var threads: String?

  @Option(
    help: ArgumentHelp("x264: frames to hold back for a better picture; 0 for none.", valueName: "count"))
  var lookahead: String?

  @Option(
    help: ArgumentHelp(
      "x264 and x265: speed against quality: auto, or ultrafast (least CPU) to veryslow.",
      discussion: """
        auto, the default of live-capture, begins with superfast, and with ultrafast for HEVC and more than 1280x720 at 30. It then \
        takes the slowest of ultrafast, superfast, veryfast, faster and fast (for HEVC: ultrafast, superfast, veryfast, fast \
        and medium) that encodes 99 of 100 frames within half a frame interval and keeps --cpu-budget. When frames are \
        late, it takes a faster one within two frames; for HEVC, as soon as another encoder is open. nightjar ctl status \
        shows the preset and the reason. With --rate max, the preset stays.
        """, valueName: "preset"))
  var x264Preset: String?

  @Option(
    help: ArgumentHelp(
      "VA-API: the render node, such as /dev/dri/renderD128; the default is the first that works.",
      valueName: "path"))
  var vaapiDevice: String?

  @Option(
    help: ArgumentHelp(
      "VA-API: the quality level, auto, or 1 (best) to the driver's last (see nightjar devices).",
      discussion: """
        auto, the default of live-capture, takes the best level with which the hardware encodes 99 of 100 frames within half a frame \
        interval. A better level begins with a key frame; when frames are late, a faster one begins within two frames, with a key \
        frame. nightjar ctl status shows the level and the reason. Mesa's drivers, for AMD, keep their own: their numbers are no \
        scale. With --rate max, the level stays.
        """, valueName: "level"))
  var vaapiQuality: String?

  @Flag(help: "VA-API: prefer the low-power entry point (EncSliceLP): less power, slightly less quality.")
  var vaapiLowPower = false

  @Option(
    help: ArgumentHelp(
      "VA-API: frame intervals that the driver may take before x264 or x265 takes over (3).", valueName: "frames"))
  var hangLimit: String?

  @Flag(
    help: ArgumentHelp(
      "Create the fallback encoder for VA-API and the encoder for the rotated picture only when they are needed.",
      discussion: "This saves about 18 MB each at 1280x720, and costs time when one is needed."))
  var noStandby = false
}

extension EncoderChoice: ExpressibleByArgument {}
extension VideoCodec: ExpressibleByArgument {}
extension EncoderPreset: ExpressibleByArgument {}
extension H264Profile: ExpressibleByArgument {}
extension CameraEncoding.RateControlMode: ExpressibleByArgument {}
