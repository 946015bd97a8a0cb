/// The commented configuration file, which `nightjar config example` prints and `make install` writes.
///
/// Empty lines separate the paragraphs. Lines that begin with `#` and a letter are options. The options of a paragraph
/// are valid together, and so are those of all paragraphs except the ones that begin with "# Instead". Tests rely on
/// that.
package enum ExampleConfiguration {
  /// - Parameter forService: `true` for the file that the service starts with: one camera, by the name from udev's
  ///   rule, served by RTSP.
  package static func text(forService: Bool) -> String {
    let all = [appliance, cameras, table].joined(separator: "\n")
    var lines = all.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
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

  private static let appliance = #"""
    # nightjar's configuration: TOML (https://toml.io). Each option of nightjar stream is a line, without its dashes.
    # Remove the # before an option to set it. The values here are examples or defaults.
    #   nightjar config check         finds mistakes in this file
    #   nightjar config show          shows the options of this file and the environment
    #   nightjar stream --help        explains the options in full
    # The command line overrides the environment (NIGHTJAR_BITRATE=2M), and the environment overrides this file.

    # ---- The host ------------------------------------------------------------------------------------------------------

    # Serve rtsp://HOST:8554/NAME: true, or an address and port. Without users (nightjar user add NAME) only this host may
    # watch.
    #rtsp = true
    # The same, encrypted: rtsps://HOST:8322/NAME.
    #rtsps = ":8322"
    # The users file, written by nightjar user. Passwords never stand in this file.
    #users = "/etc/nightjar/users"
    # The certificate for rtsps and https, with its chain, and its private key. Without them nightjar makes a certificate at
    # the first start.
    #tls-cert = "/etc/nightjar/certificate.pem"
    #tls-key = "/etc/nightjar/key.pem"
    # The SRTP suite of rtsps: AES_CM_128_HMAC_SHA1_80, AEAD_AES_128_GCM, AEAD_AES_256_GCM or none.
    #rtsps-suite = "AES_CM_128_HMAC_SHA1_80"
    # Send the stream only to viewers of rtsps.
    #require-encryption = false
    # The most viewers of rtsp and rtsps at once, for all cameras. The default depends on memory.
    #rtsp-sessions = 128
    # Encode also while nobody watches.
    #always-encode = false
    # Announce the cameras that rtsp and rtsps serve to other hosts (DNS-SD, through Avahi). Everybody on the network learns
    # that there is a camera; nightjar discover finds it.
    #announce = true
    # The group for viewers that request multicast. Everybody on the network can watch it. It takes four ports, from an even
    # one on: two for pictures, two for sound. With several cameras, write one group into each camera's table.
    #rtsp-multicast = "239.1.2.3:5004"

    # The path of the control socket for nightjar ctl, or none.
    #control = "/run/nightjar/control.sock"

    # Serve the control API at https://HOST:8443/v1/status: true, or an address and port. It serves users, and programs with
    # a token from the tokens file, written by nightjar token. A role limits each of them.
    # Browsers watch at https://HOST:8443/.
    #https = true
    #tokens = "/etc/nightjar/tokens"
    # The port, for UDP and TCP, at which they get picture and sound, and addresses at which they reach this host beside its
    # own: that of a router that forwards this port, or of a VPN.
    #webrtc-port = 8189
    #webrtc-address = ["203.0.113.7"]

    # Serve pictures at http://127.0.0.1:8080/snapshot.jpg and /stream.mjpg, and sound at /listen.mp3: true, or an
    # address and port. Other hosts need a user, and everybody on the way can see and hear the stream.
    #http = true

    # The file of the last 1000 events (nightjar ctl events), or "none" for memory; a service has one. Pictures of before
    # and after alerts are kept beside it, unless event-pictures is false. And the local times between which alerts are
    # recorded and marked as quiet.
    #events-file = "/var/lib/nightjar/events.log"
    #event-pictures = false
    #quiet-hours = "22:00-06:30"
    # Browsers whose page is closed learn of alerts by their maker's push service, once somebody wants that on the page.
    # Some services, as Apple's, want to know whom to reach: a mail address or a page.
    #web-push = false
    #web-push-contact = "anna@example.org"
    # Tell other systems of each event: a request POST to a URL, signed with the key in a file, and a program with its
    # arguments. URLs whose host has a private address, as in a home network, need webhook-private.
    #webhook = ["https://alerts.example.org/nightjar"]
    #webhook-key = "/etc/nightjar/webhook.key"
    #webhook-private = true
    #event-command = ["/usr/bin/logger", "-t", "nursery"]
    # Tell an MQTT broker of events and states, and so Home Assistant: mqtts://HOST, or mqtt://HOST, which is not
    # encrypted. The file of mqtt-ca has the certificate of the broker's authority. That of mqtt-login, which nobody else
    # may read, has the user on its first line, and the password on its second. The topics begin with mqtt-prefix, by
    # default nightjar/HOST, and those for Home Assistant with mqtt-discovery, unless that is "none". Pictures go with
    # each alert ("events"), also at an interval as in "60s", or "none" goes.
    #mqtt = "mqtts://broker.example.org"
    #mqtt-ca = "/etc/nightjar/broker-ca.crt"
    #mqtt-login = "/etc/nightjar/mqtt.login"
    #mqtt-prefix = "nightjar/box"
    #mqtt-discovery = "homeassistant"
    #mqtt-snapshots = "events"

    # Stop after this time, and write the final figures to a file.
    #duration = "8h"
    #stats-json = "/var/lib/nightjar/figures.json"
    # Write a trace of every frame to a file for ui.perfetto.dev, up to this size.
    #trace = "/var/lib/nightjar/trace.json"
    #trace-limit = "256M"
    # The part of the host's processors that x264-preset = "auto" may use, for all cameras and viewers.
    #cpu-budget = "50%"
    # Keep all memory in RAM once it was used. This needs unlimited locked memory (the service has that).
    #lock-memory = true

    """#

  private static let cameras = #"""
    # ---- Cameras: an option here applies to each camera whose own table does not set it ----------------------------------

    # The picture size and frames per second; the default is 1280x720 at 30, or the camera's nearest.
    #size = "1280x720"
    #fps = 30
    # The camera's pixel format (see nightjar devices); auto takes the cheapest format that reaches size and rate. h264 is
    # encoder = "camera".
    #format = "auto"

    # Start without a camera, or without one that has this size, and stream a placeholder until one appears.
    #wait = true
    # The reaction if the camera is unplugged, stalls or fails: placeholder, or exit.
    #on-loss = "placeholder"

    # Rotate the picture clockwise: 0, 90, 180, 270, or auto (follow the device's sensor). Then mirror it left to right.
    #orientation = 0
    #mirror = false

    # Instead: follow the sensor of a device whose camera looks at its user (away is the default).
    #orientation = "auto"
    #facing = "user"

    # The camera's controls; nightjar devices --controls lists them. The value of a menu is the number or the name of an
    # entry. Or, below all other options and below a [[camera]], write a table [controls] or [camera.controls] with lines
    # like brightness = 10.
    #controls = ["brightness=10", "contrast=140"]
    # Fix exposure, gain, white balance and focus once they have settled. The camera also keeps its rate in the dark.
    #sensor-lock = true
    # The mains frequency, against the flicker of lamps: 50, 60, "off" or "auto".
    #power-line = 50
    # The limits of night (or [night]): local times, or below and above as the picture's mean brightness, 0 to 255, as in
    # ["below=20", "above=30"]. And the camera's controls at night (or [night.controls]).
    #night = ["from=19:30", "to=06:30"]
    #night-controls = ["brightness=40", "gain=100"]

    # The microphone: auto (the camera's own; if there is one camera only, also ALSA's default card), none, test (a beep
    # each second), or a sound device such as "hw:CARD=C920" (see nightjar devices).
    #audio = "auto"
    # Bits per second of the sound, "6k" to "128k"; its gain in decibels; 1 (mono) or 2 (stereo) channels.
    #audio-bitrate = "32k"
    #audio-gain = 0
    #audio-channels = 1
    # Reduce sound below 100 Hz: steps, wind, mains hum.
    #audio-high-pass = true
    # Alerts, shown by nightjar events. Noise: off, low, medium, high, or decibels above the background, as in "12dB".
    # Crying: "probably crying", by its harmonics and rhythm.
    #noise = "medium"
    #crying = true
    # Movement: off, low, medium or high; and parts of the camera's picture that do not count, in percent: left, top, width,
    # height.
    #movement = "medium"
    #movement-mask = ["0,0,100,20"]

    # Bits per second, as in 2500000, "2.5M" or "800k"; auto depends on size and rate.
    #bitrate = "auto"
    # The least bits per second for viewers on weak networks: the bitrate follows the slowest one between both values. Those
    # whose networks take less get smaller pictures.
    #bitrate-floor = "1M"
    # The rate control: cbr (constant bitrate) or vbr (variable, the bitrate on average).
    #rate-control = "cbr"
    # The most of the stream that one frame may take: smaller is smoother, larger is sharper.
    #buffer = "500ms"

    # Instead: constant quality, 1 (best) to 51, at any bitrate.
    #rate-control = "cqp"
    #quantizer = 26

    # The purpose of the stream: ultra-low-latency, live-capture, active-transcoding or background-transcoding. It sets
    # values for the options below; each option overrides it.
    #preset = "live-capture"
    # The longest time from one key frame to the next, as in "2s" or "500ms".
    #keyframe-interval = "2s"
    # The H.264 profile: baseline (every decoder accepts it), main or high. The default is high; with https or http, which
    # serve browsers, it is baseline.
    #profile = "baseline"
    # The slices of a picture. With more slices, a lost packet costs less of the picture.
    #slices = 1
    # The codec: h264, or hevc (H.265). At low bitrates, hevc needs less bitrate for the same picture. Without hardware it
    # takes several times the processor time. Fewer players and browsers show it.
    #codec = "h264"
    # The encoder: auto (VA-API hardware; x264, or x265 for hevc, if that fails), vaapi, x264, x265, or camera (the
    # camera's own H.264, passed on as long as the picture is upright and nobody gets JPEG pictures).
    #encoder = "auto"
    # Create the fallback encoder for VA-API and the encoder for the rotated picture only when they are needed.
    #no-standby = false

    # x264: threads (auto or a number), frames to hold back for a better picture, and, for x265 too, speed against quality:
    # auto (by measurement), or ultrafast to veryslow.
    #threads = "auto"
    #lookahead = 0
    #x264-preset = "auto"

    # Instead of slices: x264's largest slice in bytes, or "mtu" for one packet each. A lost packet then costs one slice.
    #slice-size = "mtu"
    # x264: refresh the picture column by column within keyframe-interval, without bursts of key frames.
    #intra-refresh = true

    # VA-API: the render node, the quality level (auto, by measurement, or 1, the best, to the driver's last), less power
    # for slightly less quality, and the frame intervals that the driver may take before x264 or x265 takes over.
    #vaapi-device = "/dev/dri/renderD128"
    #vaapi-quality = "auto"
    #vaapi-low-power = false
    #hang-limit = 3

    # The limits for heat: auto, off, or three temperatures in degrees Celsius, as in "65,75,85".
    #thermal = "auto"
    # Reduce effort, then frames, then picture size, while encoding takes over 80 % of the time.
    #load-adaptation = true

    # Real-time priority for the capture and send threads: auto (if the limit allows it), on (by any privilege) or off. And
    # the processors for the camera's threads.
    #realtime = "auto"
    #cpus = "0"
    # Optimizations to switch off: pool, zerocopy, slices, rtprio, timerslack, gso, mmsg, sharing, standby.
    #without = ["gso", "mmsg"]

    # Spread the packets of a large frame over this part of the frame interval: 0 to 1.
    #pacing = 0.25

    """#

  private static let table = #"""
    # ---- Each camera -----------------------------------------------------------------------------------------------------
    #
    # One table [[camera]] for each camera, with its own name: the last part of its URL. Without tables there is one camera.
    # For two cameras, remove the # before [[camera]], name and source, and repeat these three lines below; then only these
    # cameras exist. A table may also set the options from above for its camera, as in bitrate = "1M".

    #[[camera]]
    #name = "camera"
    # The name that announce shows; the default is "camera on" and the host's name.
    #announce-name = "Front door"
    # auto (the first camera), test, a device, or file:CLIP.y4m. nightjar devices lists names that stay the same.
    #source = "/dev/v4l/by-id/usb-…-video-index0"
    # Destinations besides rtsp, and the file for the session description that their players need. The sound goes to the
    # port plus 4; ?audio=PORT chooses another port, ?audio=none sends no sound, ?payload=mp2t carries picture and sound.
    #to = ["rtp://192.168.1.20:5004", "rtp://192.168.1.21:5006?payload=mp2t"]
    #sdp = "/var/lib/nightjar/camera.sdp"

    # Instead: a clip, at its own rate (realtime) or as fast as possible (max), this many times; the default is for ever.
    #source = "file:/srv/clip.y4m"
    #rate = "realtime"
    #loop = 1

    """#
}
