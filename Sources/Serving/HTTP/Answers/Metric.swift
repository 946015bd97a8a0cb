/// The metrics of `GET /metrics`, by their Prometheus names. Units: seconds, bytes, degrees Celsius, shares of 1; for
/// sound dBFS and ppm, in which people read levels and clocks. The name of a counter ends in `_total`. docs/metrics.md is
/// their table, which a test compares.
package enum Metric: String, CaseIterable, Sendable {
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
  case browserPortRefused = "nightjar_browser_port_refused_total"
  case eventsSent = "nightjar_events_sent_total"
  case eventFailures = "nightjar_event_failures_total"
  case eventsDropped = "nightjar_events_dropped_total"
  case eventsLost = "nightjar_events_lost_total"
  case mqttConnected = "nightjar_mqtt_connected"

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
  case passed = "nightjar_encoder_passed_frames_total"
  case handovers = "nightjar_encoder_handovers_total"
  case effort = "nightjar_encoder_effort"
  case qualityLevel = "nightjar_encoder_quality_level"

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
  case unknownSenders = "nightjar_stranger_datagrams_total"
  case viewerLoss = "nightjar_viewer_loss_ratio"
  case viewerJitter = "nightjar_viewer_jitter_seconds"
  case viewerRoundTrip = "nightjar_viewer_round_trip_seconds"
  case viewerBandwidth = "nightjar_viewer_bandwidth_bytes"
  case viewerQueueing = "nightjar_viewer_queueing_seconds"
  case viewerStops = "nightjar_viewer_stops_total"
  case smallViewers = "nightjar_small_picture_viewers"
  case viewerSmallHeight = "nightjar_viewer_small_picture_height"
  case renditionChanges = "nightjar_rendition_changes_total"
  case smallEncoded = "nightjar_small_pictures_encoded_total"
  case smallDropped = "nightjar_small_pictures_dropped_total"
  case smallMissed = "nightjar_small_pictures_missed_total"
  case smallFailures = "nightjar_small_encoder_failures_total"
  case h264Viewers = "nightjar_h264_rendition_viewers"
  case h264Encoded = "nightjar_h264_rendition_pictures_encoded_total"
  case h264Sent = "nightjar_h264_rendition_pictures_sent_total"
  case h264Dropped = "nightjar_h264_rendition_pictures_dropped_total"

  // Its pictures, for viewers by HTTP.
  case pictures = "nightjar_pictures_total"
  case picturesSkipped = "nightjar_pictures_skipped_total"

  // Its sound.
  case soundPresent = "nightjar_sound_present"
  case soundLosses = "nightjar_sound_losses_total"
  case soundOverruns = "nightjar_sound_overruns_total"
  case soundFailures = "nightjar_sound_encoder_failures_total"
  case soundDropped = "nightjar_sound_dropped_total"
  case soundDrift = "nightjar_sound_drift_ppm"
  case soundMuted = "nightjar_sound_muted"
  case soundLevel = "nightjar_sound_rms_dbfs"
  case soundPeak = "nightjar_sound_peak_dbfs"
  case soundClipped = "nightjar_sound_clipped_samples_total"
  case soundDigitalSilence = "nightjar_sound_digital_silence_seconds"
  case soundSilence = "nightjar_sound_silence_seconds_total"
  case mp3Frames = "nightjar_mp3_frames_total"
  case mp3Skipped = "nightjar_mp3_skipped_total"

  // The process, by the names that Prometheus has for every program.
  case processStart = "process_start_time_seconds"
  case processCPU = "process_cpu_seconds_total"
  case processMemory = "process_resident_memory_bytes"
  case processVirtualMemory = "process_virtual_memory_bytes"
  case processDescriptors = "process_open_fds"
  case processDescriptorLimit = "process_max_fds"

  /// The kind of a metric, as `# TYPE` says it.
  package enum Kind: String, Sendable {
    /// A number that only rises, and begins at zero with the program.
    case counter
    /// A number that rises and falls.
    case gauge
    /// The numbers of values up to each of several limits.
    case histogram
  }

  /// The metric's kind.
  package var kind: Kind {
    switch self {
    case .stageLatency, .latency, .firstPacketLatency: .histogram
    default: rawValue.hasSuffix("_total") ? .counter : .gauge
    }
  }

  /// The labels of each of its lines, except a histogram's `le`.
  package var labels: [String] {
    switch self {
    case .buildInfo: ["version"]
    case .temperature: ["zone"]
    case .thermalState: ["state"]
    case .failedLogins, .connectionsRefused: ["server"]
    case .browserPortRefused: ["cause"]
    case .eventsSent, .eventFailures, .eventsDropped: ["outlet"]
    case .eventsLost: ["outlet", "cause"]
    case .state: ["camera", "state"]
    case .dropped, .viewerStops: ["camera", "cause"]
    case .stageLatency: ["camera", "stage"]
    case .encoderInfo: ["camera", "encoder"]
    case .viewers, .pictures: ["camera", "kind"]
    case .viewerLoss, .viewerJitter, .viewerRoundTrip, .viewerBandwidth, .viewerQueueing, .viewerSmallHeight:
      ["camera", "viewer"]
    case .reloads, .rtspConnections, .rtspSessions, .rtspRequests, .rtspRequestsRefused, .mqttConnected, .processStart,
      .processCPU, .processMemory, .processVirtualMemory, .processDescriptors, .processDescriptorLimit:
      []
    default: ["camera"]
    }
  }

  /// The description of the metric, as `# HELP` says it.
  package var help: String {
    switch self {
    case .buildInfo: "Always 1; the version is in the label."
    case .reloads: "Reloads of the configuration that succeeded."
    case .temperature: "The temperature of the hottest thermal zone that nightjar reads."
    case .thermalState: "1 for the thermal state of the host, and 0 for the other states."
    case .rtspConnections: "Current RTSP connections."
    case .rtspSessions: "Current RTSP sessions."
    case .rtspRequests: "RTSP requests answered."
    case .rtspRequestsRefused: "RTSP requests refused, and input that is not RTSP."
    case .failedLogins: "Logins with a wrong name, password or token."
    case .connectionsRefused: "Connections refused because there were too many."
    case .browserPortRefused: "Datagrams and connections refused at the port of browsers."
    case .eventsSent: "Events that the webhooks, the command, the MQTT broker or the push services have taken."
    case .eventFailures:
      "Attempts to send events that failed or were refused; for MQTT, also connections that failed or were lost."
    case .eventsDropped: "Events dropped because too many waited."
    case .eventsLost: "Events lost: the other side refused them, takes none of their size, or ends connections at them."
    case .mqttConnected: "1 while the MQTT broker has nightjar as a client, otherwise 0."
    case .healthy: "1 if the camera's stream is healthy by /healthz, otherwise 0."
    case .state: "1 for the camera's state by /healthz, and 0 for the other states."
    case .losses: "Losses of the camera."
    case .reopenings: "Times that nightjar opened the camera again."
    case .restarts: "Restarts of the camera's pipeline, by a reload or after a failure."
    case .placeholders: "Placeholder frames streamed instead of the camera's own."
    case .captured: "Frames from the camera, placeholders included."
    case .encoded: "Frames encoded, key frames included."
    case .keyFrames: "Key frames encoded."
    case .sent:
      "Frames that the network accepted for at least one destination; pictures in H.264 beside HEVC are counted apart."
    case .dropped: "Frames lost, by cause."
    case .thinned: "Frames left out on purpose, to reduce the frame rate."
    case .unwatched: "Frames not encoded because nobody watched."
    case .stageLatency: "The time of a frame in a stage."
    case .latency: "The time from the camera's timestamp to a frame's last packet."
    case .firstPacketLatency: "The time from the camera's timestamp to a frame's first packet."
    case .encoderInfo: "Always 1; the current encoder is in the label."
    case .encoderBusy: "The time that the encoder worked, scaling included."
    case .encodedBytes: "Bytes of coded pictures, without start codes."
    case .bitrate: "The encoder's target in bytes per second; absent if the quality is fixed."
    case .failovers: "Switches from the hardware encoder to its fallback."
    case .hangs: "Fail-overs because a driver did not answer."
    case .recoveries: "Switches back to the hardware encoder."
    case .switches: "Rotations at which another encoder took over."
    case .adaptations: "Changes of the encoder's size, preset, threads or quality level while it streams."
    case .passed: "Frames of the camera's own H.264 that were passed on."
    case .handovers: "Changes between the camera's own H.264 and frames encoded here."
    case .effort:
      "The number of the preset of x264 or x265, 0 for ultrafast; absent if the preset is configured, or while hardware encodes."
    case .qualityLevel:
      "VA-API's quality level, 1 for the best; absent if the level is configured, or while software or the camera encodes."
    case .viewers:
      "Current viewers: given destinations, clients by RTSP, browsers by WebRTC, clients that watch JPEG pictures or listen to "
        + "MP3, and clients that have taken single pictures within the last minute."
    case .slowViewers: "Viewers that lose frames because they are too slow."
    case .packets: "RTP packets that the network accepted, for all viewers."
    case .bytes: "Bytes of the packets sent, RTP headers included, without UDP and IP."
    case .packetsUnsent: "RTP packets that the network did not accept."
    case .retransmissions: "Packets sent again because a viewer requested them."
    case .viewerFramesDropped: "Frames that viewers lost, whole or in part, mostly because they were too slow."
    case .keyFrameRequests: "Key frames that viewers requested by RTCP or needed."
    case .keyFramesGranted: "Key frames made for such requests."
    case .controlRefused: "SRTCP packets of viewers refused: forged, replayed, reflected or too many."
    case .unknownSenders: "Datagrams from addresses of no viewer."
    case .viewerLoss: "The share of packets that a viewer lost between its last two RTCP reports, 0 to 1."
    case .viewerJitter: "The jitter of packets at a viewer, by its last RTCP report."
    case .viewerRoundTrip: "The round-trip time to a viewer, by RTCP."
    case .viewerBandwidth: "Bytes per second that a viewer's network takes; absent if it has shown no limit."
    case .viewerQueueing: "The time that packets last waited on a viewer's network."
    case .viewerStops: "Stops of a viewer's stream by its circuit breaker (RFC 8083), by cause."
    case .smallViewers: "Viewers that get small pictures because their networks are weak."
    case .viewerSmallHeight:
      "The shorter side in pixels of the small pictures that a viewer gets; absent if it gets the full ones."
    case .renditionChanges: "Changes of viewers from full pictures to small ones, and back."
    case .smallEncoded: "Small pictures encoded."
    case .smallDropped: "Frames that became no small picture, because the encoder was late or failed."
    case .smallMissed: "Times that a viewer waited in vain for small pictures, and went on with full ones."
    case .smallFailures:
      "Times that the encoder of small pictures could not be opened, failed, or fell back to software."
    case .h264Viewers: "Viewers that get H.264 because they cannot decode the HEVC of the camera."
    case .h264Encoded: "Pictures encoded in H.264 beside HEVC."
    case .h264Sent: "Pictures in H.264 beside HEVC that the network accepted for at least one viewer."
    case .h264Dropped: "Frames that were not encoded in H.264 beside HEVC, because the encoder was late or failed."
    case .pictures: "JPEG pictures for viewers by HTTP: coded by nightjar, or the camera's own."
    case .picturesSkipped: "Frames without a JPEG picture because the one before was not ready."
    case .soundPresent: "1 if the microphone delivers samples, otherwise 0."
    case .soundLosses: "Losses of the microphone."
    case .soundOverruns: "Times that samples were lost because nothing read them in time."
    case .soundFailures: "Frames of 20 ms that the sound encoder refused."
    case .soundDropped: "Packets of sound that MPEG-TS misses because the sender was late."
    case .soundDrift: "The deviation of the microphone's clock from the host's."
    case .soundMuted: "1 if viewers get silence on request, otherwise 0."
    case .soundLevel: "The root mean square of the last tenth of a second; 0 is full scale, -100 is silence."
    case .soundPeak: "The largest sample of the last tenth of a second, on the same scale."
    case .soundClipped: "Samples clipped by the microphone or by the gain."
    case .soundDigitalSilence:
      "The time for which the microphone has recorded nothing but digital silence; 0 while it records."
    case .soundSilence: "Silence in the place of samples that did not come."
    case .mp3Frames: "MP3 frames of 24 ms, encoded once for all listeners by HTTP."
    case .mp3Skipped: "Frames of 20 ms that listeners by HTTP miss because the MP3 encoder was late."
    case .processStart: "The start of the program, in seconds since 1970."
    case .processCPU: "The program's processor time, user and kernel together."
    case .processMemory: "The program's memory in RAM."
    case .processVirtualMemory: "The program's address space."
    case .processDescriptors: "Open files and sockets."
    case .processDescriptorLimit: "The limit of open files and sockets."
    }
  }
}
