/// What `GET /metrics` tells, each as Prometheus names it: seconds, bytes, degrees Celsius, shares of 1; what only rises
/// ends in `_total`. docs/metrics.md is the table of them, which a test compares.
public enum Metric: String, CaseIterable, Sendable {
  // The program.
  case buildInfo = "nightjar_build_info"
  case reloads = "nightjar_reloads_total"
  case temperature = "nightjar_temperature_celsius"
  case thermalState = "nightjar_thermal_state"
  case rtspConnections = "nightjar_rtsp_connections"
  case rtspSessions = "nightjar_rtsp_sessions"
  case rtspRequests = "nightjar_rtsp_requests_total"
  case rtspRequestsRefused = "nightjar_rtsp_requests_refused_total"
  case failedLogins = "nightjar_failed_logins_total"
  case connectionsRefused = "nightjar_connections_refused_total"

  // A camera.
  case healthy = "nightjar_camera_healthy"
  case state = "nightjar_camera_state"
  case losses = "nightjar_camera_losses_total"
  case reopenings = "nightjar_camera_reopenings_total"
  case restarts = "nightjar_camera_restarts_total"
  case placeholders = "nightjar_placeholder_frames_total"

  // Its frames.
  case captured = "nightjar_frames_captured_total"
  case encoded = "nightjar_frames_encoded_total"
  case keyFrames = "nightjar_key_frames_encoded_total"
  case sent = "nightjar_frames_sent_total"
  case dropped = "nightjar_frames_dropped_total"
  case thinned = "nightjar_frames_thinned_total"
  case unwatched = "nightjar_frames_unwatched_total"
  case stageLatency = "nightjar_stage_duration_seconds"
  case latency = "nightjar_capture_to_wire_seconds"
  case firstPacketLatency = "nightjar_capture_to_first_packet_seconds"

  // Its encoder.
  case encoderInfo = "nightjar_encoder_info"
  case encoderBusy = "nightjar_encoder_busy_seconds_total"
  case encodedBytes = "nightjar_encoded_bytes_total"
  case bitrate = "nightjar_encoder_target_bytes_per_second"
  case failovers = "nightjar_encoder_failovers_total"
  case hangs = "nightjar_encoder_hangs_total"
  case recoveries = "nightjar_encoder_recoveries_total"
  case switches = "nightjar_orientation_switches_total"
  case adaptations = "nightjar_encoder_adaptations_total"

  // Its viewers.
  case viewers = "nightjar_viewers"
  case slowViewers = "nightjar_slow_viewers"
  case packets = "nightjar_packets_sent_total"
  case bytes = "nightjar_bytes_sent_total"
  case packetsUnsent = "nightjar_packets_unsent_total"
  case retransmissions = "nightjar_packets_retransmitted_total"
  case viewerFramesDropped = "nightjar_viewer_frames_dropped_total"
  case keyFrameRequests = "nightjar_key_frame_requests_total"
  case keyFramesGranted = "nightjar_key_frame_requests_granted_total"
  case controlRefused = "nightjar_rtcp_refused_total"
  case strangers = "nightjar_stranger_datagrams_total"
  case viewerLoss = "nightjar_viewer_loss_ratio"
  case viewerJitter = "nightjar_viewer_jitter_seconds"
  case viewerRoundTrip = "nightjar_viewer_round_trip_seconds"

  // Its pictures, for viewers by HTTP.
  case pictures = "nightjar_pictures_total"
  case picturesSkipped = "nightjar_pictures_skipped_total"

  // The process, by the names that Prometheus has for every program.
  case processStart = "process_start_time_seconds"
  case processCPU = "process_cpu_seconds_total"
  case processMemory = "process_resident_memory_bytes"
  case processVirtualMemory = "process_virtual_memory_bytes"
  case processDescriptors = "process_open_fds"
  case processDescriptorLimit = "process_max_fds"

  /// What kind of number it is, as `# TYPE` says it.
  public enum Kind: String, Sendable {
    /// It only rises, and begins at nought with the program.
    case counter
    /// It goes up and down.
    case gauge
    /// How many took no longer than each of some times.
    case histogram
  }

  /// What kind of number it is.
  public var kind: Kind {
    switch self {
    case .stageLatency, .latency, .firstPacketLatency: .histogram
    default: rawValue.hasSuffix("_total") ? .counter : .gauge
    }
  }

  /// The labels that every line of it has, but for a histogram's `le`.
  public var labels: [String] {
    switch self {
    case .buildInfo: ["version"]
    case .temperature: ["zone"]
    case .thermalState: ["state"]
    case .failedLogins, .connectionsRefused: ["server"]
    case .state: ["camera", "state"]
    case .dropped: ["camera", "cause"]
    case .stageLatency: ["camera", "stage"]
    case .encoderInfo: ["camera", "encoder"]
    case .viewers, .pictures: ["camera", "kind"]
    case .viewerLoss, .viewerJitter, .viewerRoundTrip: ["camera", "viewer"]
    case .reloads, .rtspConnections, .rtspSessions, .rtspRequests, .rtspRequestsRefused, .processStart, .processCPU,
      .processMemory, .processVirtualMemory, .processDescriptors, .processDescriptorLimit:
      []
    default: ["camera"]
    }
  }

  /// What it counts or measures, as `# HELP` says it.
  public var help: String {
    switch self {
    case .buildInfo: "Always 1; the version is in the label."
    case .reloads: "Times that the configuration was read again and taken."
    case .temperature: "The hottest thermal zone that nightjar listens to."
    case .thermalState: "1 for the state that the machine is in, by its thermal zones, and 0 for the others."
    case .rtspConnections: "RTSP connections of now."
    case .rtspSessions: "RTSP sessions of now."
    case .rtspRequests: "RTSP requests that were answered."
    case .rtspRequestsRefused: "RTSP requests that were refused, and bytes that were none."
    case .failedLogins: "Logins with a wrong name, password or token."
    case .connectionsRefused: "Connections that were turned away because there were too many."
    case .healthy: "Whether the camera's stream is well, as /healthz says: 1 or 0."
    case .state: "1 for the state that the camera is in, as /healthz says, and 0 for the others."
    case .losses: "Times that the camera was lost."
    case .reopenings: "Times that the camera was opened again."
    case .restarts: "Times that the camera's pipeline was begun anew, by a reload or after a failure."
    case .placeholders: "Frames that were streamed in place of the camera's own."
    case .captured: "Frames that came from the camera, with those in its place."
    case .encoded: "Frames that were encoded, key frames included."
    case .keyFrames: "Key frames that were encoded."
    case .sent: "Frames that the network took, for one destination at least."
    case .dropped: "Frames that were lost, by cause."
    case .thinned: "Frames that were left out on purpose, to encode fewer a second."
    case .unwatched: "Frames that were not encoded because nobody watched."
    case .stageLatency: "How long a frame spent in a stage."
    case .latency: "From the camera's timestamp to a frame's last packet."
    case .firstPacketLatency: "From the camera's timestamp to a frame's first packet."
    case .encoderInfo: "Always 1; the encoder at work is in the label."
    case .encoderBusy: "Time that the encoder was at work, with scaling for it."
    case .encodedBytes: "Bytes of H.264, without start codes."
    case .bitrate: "Bytes a second that the encoder aims at; absent where the quality is fixed instead."
    case .failovers: "Switches from the hardware encoder to the one behind it."
    case .hangs: "Fail-overs because a driver did not answer."
    case .recoveries: "Switches back to the hardware encoder."
    case .switches: "Changes of orientation that another encoder took over at."
    case .adaptations: "Switches to an encoder of another size or preset, to spare the machine."
    case .viewers:
      "Who gets the stream: destinations that were given, guests who came by RTSP, and viewers of JPEG pictures."
    case .slowViewers: "Viewers that are losing frames because they take them too slowly."
    case .packets: "RTP packets that the network took, over all viewers."
    case .bytes: "Their bytes, RTP headers included, without UDP and IP."
    case .packetsUnsent: "RTP packets that the network did not take."
    case .retransmissions: "Packets that were sent once more because a viewer asked for them."
    case .viewerFramesDropped: "Frames that viewers lost, whole or in part, mostly because they were too slow."
    case .keyFrameRequests: "Key frames that viewers asked for by RTCP or needed."
    case .keyFramesGranted: "Key frames that were made for such requests."
    case .controlRefused: "SRTCP of viewers that was not taken: forged, replayed, reflected or too much."
    case .strangers: "Datagrams from addresses that are no viewer's."
    case .viewerLoss: "The share of packets that a viewer lost between its last two RTCP reports, 0 to 1."
    case .viewerJitter: "How unevenly packets arrive at a viewer, by its last RTCP report."
    case .viewerRoundTrip: "From here to a viewer and back, by RTCP."
    case .pictures: "JPEG pictures for viewers by HTTP: made here, or the camera's own."
    case .picturesSkipped: "Frames that were no JPEG picture because the one before was not ready."
    case .processStart: "When the program started, in seconds since 1970."
    case .processCPU: "Processor time of the program, its own and the kernel's for it."
    case .processMemory: "Memory of the program that is in RAM."
    case .processVirtualMemory: "Address space of the program."
    case .processDescriptors: "Files and sockets that are open."
    case .processDescriptorLimit: "Files and sockets that may be open."
    }
  }
}
