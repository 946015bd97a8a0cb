/// The commented configuration file: what `nightjar config example` prints and `make install` writes.
///
/// Paragraphs stand between empty lines. Lines that begin with `#` and a letter are options: those of a paragraph can all be
/// taken together, and so can those of all paragraphs but the ones that begin with "# Instead". Tests rely on that.
enum ExampleConfiguration {
  /// - Parameter forService: as the service begins: one camera, by the name that udev's rule gives it, served by RTSP.
  static func text(forService: Bool) -> String {
    var lines = [box, cameras, table].joined(separator: "\n").split(separator: "\n", omittingEmptySubsequences: false)
      .map(String.init)
    guard forService else { return lines.joined(separator: "\n") }
    for (option, line) in serviceLines {
      guard let index = lines.firstIndex(where: { $0 == option || $0.hasPrefix("\(option) = ") }) else { continue }
      lines[index] = line
    }
    return lines.joined(separator: "\n")
  }

  private static let serviceLines = [
    ("#rtsp", "rtsp = true"), ("#wait", "wait = true"), ("#[[camera]]", "[[camera]]"),
    ("#name", #"name = "camera""#), ("#source", #"source = "/dev/nightjar/camera""#),
  ]

  private static let box = #"""
    # nightjar's configuration: TOML (https://toml.io). Each option of nightjar stream is a line, without its dashes.
    # Take away the # before an option to set it; what stands there is an example, or what holds without it.
    #   nightjar config check         finds mistakes in this file
    #   nightjar config show          shows what comes of it, and of the environment
    #   nightjar stream --help        explains the options at length
    # Options of the command line go before the environment (NIGHTJAR_BITRATE=2M), and that before this file.

    # ---- The box -------------------------------------------------------------------------------------------------------

    # Serve rtsp://HOST:8554/NAME: true, or an address and port. Without users (nightjar user add NAME) only this machine
    # may watch.
    #rtsp = true
    # The same, encrypted: rtsps://HOST:8322/NAME.
    #rtsps = ":8322"
    # Who may watch: the file that nightjar user writes. Passwords never stand in this file.
    #users = "/etc/nightjar/users"
    # The certificate for rtsps, those that vouch for it, and its private key. Without them one is made at the first start.
    #tls-cert = "/etc/nightjar/certificate.pem"
    #tls-key = "/etc/nightjar/key.pem"
    # What rtsps offers SRTP by: AES_CM_128_HMAC_SHA1_80, AEAD_AES_128_GCM, AEAD_AES_256_GCM or none.
    #rtsps-suite = "AES_CM_128_HMAC_SHA1_80"
    # Send the picture to viewers of rtsps alone.
    #require-encryption = false
    # How many may watch by rtsp and rtsps at once, all cameras together. Without it as many as memory allows.
    #rtsp-sessions = 128
    # Keep the encoder at work while nobody watches.
    #always-encode = false
    # Announce the cameras that rtsp and rtsps serve to others (DNS-SD, through Avahi): everybody on the network learns that
    # there is a camera, and finds it with nightjar discover.
    #announce = true
    # The group that viewers share who ask for multicast; everybody on the network can watch it. Of several cameras each
    # has one of its own, in its table.
    #rtsp-multicast = "239.1.2.3:5004"

    # Where nightjar ctl reaches this stream: a socket's path, or none.
    #control = "/run/nightjar/control.sock"

    # Serve the control API at https://HOST:8443/v1/status too: true, or an address and port. It is for users and for
    # programs with a token, which stands in the file that nightjar token writes; each may do what its role allows.
    #https = true
    #tokens = "/etc/nightjar/tokens"

    # Serve pictures at http://127.0.0.1:8080/snapshot.jpg and /stream.mjpg: true, or an address and port. Others than this
    # machine must be users, and anybody on the way can see what they see.
    #http = true

    # Stop after this time, and write the final figures to a file.
    #duration = "8h"
    #stats-json = "/var/lib/nightjar/figures.json"
    # Write every frame's way to a file that ui.perfetto.dev opens, no more than so many bytes.
    #trace = "/var/lib/nightjar/trace.json"
    #trace-limit = "256M"
    # Keep all memory from being swapped out, once it was used; nothing may limit that (the service may).
    #lock-memory = true

    """#

  private static let cameras = #"""
    # ---- Cameras: what stands here holds for each camera whose own table does not say otherwise --------------------------

    # Picture size and frames a second; without them 1280x720 at 30, or the nearest that the camera has.
    #size = "1280x720"
    #fps = 30
    # The camera's pixel format, as nightjar devices lists them; auto takes the cheapest that reaches size and rate.
    #format = "auto"

    # Begin without a camera, or without the one that has this size, and stream a placeholder until one comes.
    #wait = true
    # When the camera is unplugged, stalls or fails: placeholder, or exit.
    #on-loss = "placeholder"

    # Turn the picture clockwise: 0, 90, 180, 270, or auto, which follows the box's sensor. Then mirror it left to right.
    #orientation = 0
    #mirror = false

    # Instead: follow the sensor of a box whose camera looks at its user (away is the default).
    #orientation = "auto"
    #facing = "user"

    # The camera's own settings, which nightjar devices --controls lists. A menu's value is the number or the name of its
    # entry. Or, below everything else and below a [[camera]], a table [controls] or [camera.controls] with a line
    # brightness = 10 for each.
    #controls = ["brightness=10", "contrast=140"]
    # Fix exposure, gain, white balance and focus once they have settled; fewer pictures in the dark are off then, too.
    #sensor-lock = true
    # The mains' frequency, against flicker of lamps: 50, 60, "off" or "auto".
    #power-line = 50
    # When it is night (or [night]): by the local time, or below and above by the mean brightness of the picture, 0 to 255,
    # as in ["below=20", "above=30"]. And what the camera's settings are then (or [night.controls]).
    #night = ["from=19:30", "to=06:30"]
    #night-controls = ["brightness=40", "gain=100"]

    # Bits a second, as in 2500000, "2.5M" or "800k"; auto goes by size and rate.
    #bitrate = "auto"
    # How bits are spent: cbr (even) or vbr (by need, the bitrate on average).
    #rate-control = "cbr"
    # How much of the stream one frame may be: smaller is smoother, larger is sharper.
    #buffer = "500ms"

    # Instead: the same quality always, 1 (best) to 51, whatever it takes.
    #rate-control = "cqp"
    #quantizer = 26

    # What the stream is for: ultra-low-latency, live-capture, active-transcoding or background-transcoding. A set of
    # values for the options below, each of which may be given as well.
    #preset = "live-capture"
    # The longest time from one key frame to the next, as in "2s" or "500ms".
    #keyframe-interval = "2s"
    # The H.264 profile: baseline (every decoder takes it), main or high.
    #profile = "baseline"
    # Slices of a picture: more of them lose less with a packet.
    #slices = 1
    # The encoder: auto (VA-API hardware, and x264 where that fails), vaapi or x264.
    #encoder = "auto"
    # Make the encoder behind VA-API, and the one for the turned picture, only when they are needed.
    #no-standby = false

    # x264: threads (auto or a number), frames held back for a better picture, and speed against quality, from ultrafast to
    # veryslow.
    #threads = "auto"
    #lookahead = 0
    #x264-preset = "ultrafast"

    # Instead of slices by number, x264's of at most so many bytes, or "mtu" for one packet each: a lost one costs a slice.
    #slice-size = "mtu"
    # x264: refresh the picture column by column within keyframe-interval, instead of key frames that burst.
    #intra-refresh = true

    # VA-API: the render node, the quality level (1 is best), less power for a little less quality, and how many frame
    # intervals the driver may take before x264 goes on.
    #vaapi-device = "/dev/dri/renderD128"
    #vaapi-quality = 4
    #vaapi-low-power = false
    #hang-limit = 3

    # When the machine counts as hot: auto, off, or three temperatures in degrees Celsius, as in "65,75,85".
    #thermal = "auto"
    # Encode with less effort, fewer frames, smaller pictures while encoding takes over 80 % of the time.
    #load-adaptation = true

    # Real-time priority for capture and send: auto (where the limit for it says so), on (by any privilege) or off. And the
    # processors that the camera's threads run on.
    #realtime = "auto"
    #cpus = "0"
    # What to do without, to see what it brings: pool, zerocopy, slices, rtprio, timerslack, gso, mmsg, sharing, standby.
    #without = ["gso", "mmsg"]

    # Spread the packets of a large frame over this part of the frame interval: 0 to 1.
    #pacing = 0.25

    """#

  private static let table = #"""
    # ---- Each camera -----------------------------------------------------------------------------------------------------
    #
    # One [[camera]] for each, with a name of its own: the last part of its URL. Without any there is one camera all the
    # same. For two, take away the # before [[camera]], name and source, and write these three lines once more below: what
    # stands there is all that there is. What was said above may be said here otherwise, as in bitrate = "1M".

    #[[camera]]
    #name = "camera"
    # With announce: what people read; without it "camera on" and the machine's name.
    #announce-name = "Front door"
    # auto (the first camera), test, a device, or file:CLIP.y4m. nightjar devices lists names that stay the same.
    #source = "/dev/v4l/by-id/usb-…-video-index0"
    # Destinations besides rtsp, and where to write the session description that players need for them.
    #to = ["rtp://192.168.1.20:5004", "rtp://192.168.1.21:5006?payload=mp2t"]
    #sdp = "/var/lib/nightjar/camera.sdp"

    # Instead: a clip, at its own pace (realtime) or as fast as it goes (max), so many times; without loop for ever.
    #source = "file:/srv/clip.y4m"
    #rate = "realtime"
    #loop = 1

    """#
}
