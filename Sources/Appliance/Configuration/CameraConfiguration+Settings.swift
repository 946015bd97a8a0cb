import Capture
import Encoding
import Media
import Platform
import Streaming

extension CameraConfiguration {
  /// The scopes of options: shared by several cameras, or of one camera only.
  private static let shared = ConfigurationOption.Scope.camera(isShared: true)
  private static let own = ConfigurationOption.Scope.camera(isShared: false)

  /// All settings of a camera, in the order of the documentation.
  package static let settings: [Setting<Self>] = [
    .text(.name, own, \.name, SettingValues.cameraName),
    .text(.announcedName, own, \.announcedName, SettingValues.announcedName),
    .text(.source, own, \.source) { text throws(ValueError) in try SourceSelection(text: text) },
    .text(.size, shared, \.size, SettingValues.size),
    .text(.fps, kind: .number, shared, \.frameRate, SettingValues.frameRate),
    .text(.format, shared, \.pixelFormat, SettingValues.pixelFormat),
    .flag(.wait, shared, \.loss.waits),
    .text(.onLoss, shared, \.loss.given, SettingValues.choice),
    .text(.rate, shared, \.clipPacing, SettingValues.clipPacing),
    .text(.loop, kind: .integer, shared, \.clipLoops) { text throws(ValueError) in
      try SettingValues.number(text, within: 1...999_999_999)
    },
    .text(.orientation, kind: .integer, shared, \.orientation.choice) { text throws(ValueError) in
      try CameraOrientation.Choice(text: text)
    },
    .flag(.mirror, shared, \.orientation.mirrors),
    .text(.facing, shared, \.orientation.facing, CameraOrientation.facing),
    .text(.sysfs, .tests, \.orientation.sysfs),
    .text(.udev, .tests, \.orientation.udev),
    .list(.controls, kind: .table, shared, \.controls.controls, SettingValues.assignment),
    .flag(.sensorLock, shared, \.controls.locksSensor),
    .text(.powerLine, kind: .integer, shared, \.controls.powerLine, SettingValues.choice),
    .list(.night, kind: .table, shared, \.controls.night, NightSchedule.entry),
    .list(.nightControls, kind: .table, shared, \.controls.nightControls, SettingValues.assignment),
    .text(.bitrate, kind: .number, shared, \.encoding.bitrate, SettingValues.bitrate),
    .text(.bitrateFloor, kind: .number, shared, \.encoding.bitrateFloor, SettingValues.bitrate),
    .text(.preset, shared, \.encoding.preset, SettingValues.choice),
    .text(.codec, shared, \.encoding.codec, SettingValues.choice),
    .text(.encoder, shared, \.encoding.encoder, SettingValues.choice),
    .text(.rateControl, shared, \.encoding.rateControl, SettingValues.choice),
    .text(.quantizer, kind: .integer, shared, \.encoding.quantizer) { text throws(ValueError) in
      try SettingValues.number(text, within: EncoderConfiguration.quantizerLimits)
    },
    .text(.buffer, kind: .number, shared, \.encoding.buffer) { text throws(ValueError) in
      try SettingValues.duration(text, within: EncoderConfiguration.bufferLimits, example: "500ms or 1s")
    },
    .text(.keyFrameInterval, kind: .number, shared, \.encoding.keyFrameInterval) { text throws(ValueError) in
      try SettingValues.duration(text, within: 0.1...600, example: "2s or 500ms")
    },
    .text(.profile, shared, \.encoding.profile, SettingValues.choice),
    .text(.slices, kind: .integer, shared, \.encoding.slices) { text throws(ValueError) in
      try SettingValues.number(text, within: EncoderConfiguration.sliceLimits)
    },
    .text(.sliceSize, kind: .integer, shared, \.encoding.sliceSize, SettingValues.sliceSize),
    .flag(.intraRefresh, shared, \.encoding.intraRefresh),
    .text(.threads, kind: .integer, shared, \.encoding.threads, SettingValues.threads),
    .text(.lookahead, kind: .integer, shared, \.encoding.lookahead) { text throws(ValueError) in
      try SettingValues.number(text, within: EncoderConfiguration.lookaheadLimits)
    },
    .text(.x264Preset, shared, \.encoding.x264Preset, SettingValues.x264Preset),
    .text(.vaapiDevice, shared, \.encoding.vaapiDevice),
    .text(.vaapiQuality, kind: .integer, shared, \.encoding.vaapiQuality, SettingValues.vaapiQuality),
    .flag(.vaapiLowPower, shared, \.encoding.vaapiLowPower),
    .text(.hangLimit, kind: .integer, shared, \.encoding.hangLimit) { text throws(ValueError) in
      try SettingValues.number(text, within: EncoderLineup.Policy.hangLimits)
    },
    .flag(.noStandby, shared, \.encoding.noStandby),
    .text(.thermal, shared, \.adaptation.thermal) { text throws(ValueError) in
      try CameraAdaptation.Thermal(text: text)
    },
    .flag(.loadAdaptation, kind: .invertibleFlag, shared, \.adaptation.followsLoad),
    .text(.realTime, shared, \.scheduling.realTime, SettingValues.choice),
    .text(.processors, shared, \.scheduling.processors, SettingValues.processors),
    .list(.without, shared, \.scheduling.withoutEach, SettingValues.optimizations),
    .list(.to, own, \.destinations, SettingValues.destination),
    .text(.pacing, kind: .number, shared, \.pacingPart, SettingValues.pacing),
    .text(.sdp, own, \.descriptionPath),
    .text(.audio, own, \.sound.choice) { text throws(ValueError) in try CameraSound.Choice(text: text) },
    .text(.audioBitrate, kind: .number, shared, \.sound.bitrate, CameraSound.bitrate),
    .text(.audioGain, kind: .number, shared, \.sound.gain, CameraSound.gain),
    .text(.audioChannels, kind: .integer, shared, \.sound.channels) { text throws(ValueError) in
      try SettingValues.number(text, within: 1...2)
    },
    .flag(.audioHighPass, kind: .invertibleFlag, shared, \.sound.usesHighPass),
    .text(.noise, shared, \.detection.noise, CameraDetection.noise),
    .flag(.crying, shared, \.detection.crying),
    .text(.movement, shared, \.detection.movement, CameraDetection.movement),
    .list(.movementMask, shared, \.detection.masks, CameraDetection.mask),
    .text(.group, own, \.group, SettingValues.group),
    .flag(.alwaysEncode, shared, \.alwaysEncodes),
  ]

  /// Reports settings that contradict each other, or those of the appliance.
  package func check(in appliance: ApplianceConfiguration, _ faults: inout SettingFaults) {
    loss.check(&faults)
    controls.check(&faults)
    detection.check(&faults)
    orientation.check(&faults)
    encoding.check(&faults)
    scheduling.check(&faults)
    if !appliance.rtsp.isServed {
      if group != nil { faults.add("\(.group) is for \(.rtsp) and \(.rtsps) only") }
      if alwaysEncodes { faults.add("\(.alwaysEncode) is for \(.rtsp) and \(.rtsps) only") }
    }
    let suite = appliance.rtsp.suite
    if appliance.rtsp.requiresEncryption, group != nil, let suite, suite.suite == nil {
      faults.add("\(.requireEncryption) and \(.group): a group is encrypted by a \(.suite)")
    }
    checkSource(&faults)
    checkPassThrough(&faults)
    for (index, destination) in destinations.enumerated() {
      do throws(StreamDestinationError) {
        _ = try destination.payload(for: encoding.codec, sound: nil)
      } catch {
        faults.add(.to, "\(error)")
      }
      for other in destinations[..<index] where other.host == destination.host {
        if let port = destination.port(sharedWith: other) {
          faults.add(.to, "\(destination.host) port \(port) is given twice: \(other) and \(destination)")
        }
      }
    }
  }

  private func checkPassThrough(_ faults: inout SettingFaults) {
    if pixelFormat == .h264, encoding.codec == .hevc {
      faults.add("\(.format) h264 is passed on as it is: choose \(.codec) h264, or another format")
    } else if pixelFormat == .h264, encoding.encoder == .x264 || encoding.encoder == .vaapi {
      faults.add("\(.format) h264 is the camera's own encoder: choose \(.encoder) camera, or another format")
    }
    guard passesThrough else { return }
    if !source.isCamera { faults.add("\(.encoder) camera is for cameras only") }
    if case .darkness = controls.profile.night?.condition {
      faults.add("\(.night) measures pictures, which \(.encoder) camera does not decode: choose from and to")
    }
    if detection.movement != nil {
      faults.add("\(.movement) measures pictures, which \(.encoder) camera does not decode: leave one of them out")
    }
  }

  private func checkSource(_ faults: inout SettingFaults) {
    if source.isFile {
      if size != nil { faults.add(.size, "a file has its own size") }
      if frameRate != nil { faults.add(.fps, "a file has its own rate") }
    } else {
      if clipPacing != nil { faults.add("\(.rate) is for \(.source) file: only") }
      if clipLoops != nil { faults.add("\(.loop) is for \(.source) file: only") }
    }
    guard !source.isCamera else { return }
    if loss.waits || loss.given != nil {
      faults.add("\(.wait) and \(.onLoss) are for cameras only: leave them out, or choose a camera with \(.source)")
    }
    if controls.areGiven {
      faults.add("\(.controls), \(.sensorLock), \(.powerLine) and \(.night) are for cameras only")
    }
    if pixelFormat != nil { faults.add("\(.format) is for cameras only") }
  }
}

extension CameraLoss {
  fileprivate func check(_ faults: inout SettingFaults) {
    if waits, reaction == .exit { faults.add("\(.wait) and \(.onLoss) exit exclude each other") }
  }
}
