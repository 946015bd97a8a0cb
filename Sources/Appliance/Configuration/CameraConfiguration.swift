package import Capture
import Encoding
package import Media
package import Serving
package import Streaming

/// The configuration of one camera and its stream.
package struct CameraConfiguration: SettingsConfiguration {
  package typealias SettingName = CameraSetting

  /// The name of the camera, in its URL too.
  package var name = "camera"
  /// The name that people read in lists of streams; nil for the camera's name and the host's.
  package var announcedName: String?
  /// The source of the pictures.
  package var source = SourceSelection.auto
  /// The size of the pictures; nil for the default, or the nearest that the camera has.
  package var size: PictureSize?
  /// The frame rate; nil for the default, or the nearest that the camera has.
  package var frameRate: FrameRate?
  /// The camera's pixel format; nil for the cheapest that reaches size and rate.
  package var pixelFormat: PixelFormat?
  /// `true` if the camera's own H.264 is passed on.
  package var passesThrough: Bool { encoding.encoder == .camera || pixelFormat == .h264 }
  /// The pace of a clip; nil for its own.
  package var clipPacing: Y4MFile.Pacing?
  /// The number of times that a clip is played; nil for no end.
  package var clipLoops: Int?
  /// The stream without its camera.
  package var loss = CameraLoss()
  /// The camera's own controls.
  package var controls = CameraControlSettings()
  /// The orientation of the pictures.
  package var orientation = CameraOrientation()
  /// The encoder.
  package var encoding = CameraEncoding()
  /// The sound.
  package var sound = CameraSound()
  /// The settings of the detectors.
  package var detection = CameraDetection()
  /// The restrictions of a stream on a host that is too hot or too slow.
  package var adaptation = CameraAdaptation()
  /// The scheduling of the camera's threads, and the memory of frames.
  package var scheduling = CameraScheduling()
  /// The destinations.
  package var destinations: [StreamDestination] = []
  /// The file of the session description.
  package var descriptionPath: String?
  /// The multicast group that viewers by RTSP may share.
  package var group: RTSPServerConfiguration.Group?
  /// `true` if the encoder works while nobody watches.
  package var alwaysEncodes = false
  var pacingPart: Double?

  /// The settings in words, with their origins. A setting without an entry has its default.
  package internal(set) var options: OptionLayer = [:]

  package init() {}

  /// The part of a frame interval over which a large frame is spread.
  package var pacing: Double {
    if let pacingPart { return pacingPart }
    return encoding.preset == .ultraLowLatency || clipPacing == .maximum ? 0 : 0.25
  }

  /// The maximum number of bytes of a slice that fits one packet for all destinations.
  package var payloadLimit: Int { StreamDestination.payloadLimit(of: destinations) }

  /// `true` if the stream may restrict itself. A file at full speed uses all of the host's capacity.
  package var adapts: Bool { clipPacing != .maximum && (adaptation.followsLoad || adaptation.thermal != .off) }

  /// `true` if x264's preset is chosen by measurement. A file at full speed has no pace to measure by.
  package var governsEffort: Bool { clipPacing != .maximum && encoding.governsEffort }

  /// `true` if the quality level of hardware is chosen by measurement, for any source but a file at full speed.
  package var governsQuality: Bool { clipPacing != .maximum && encoding.governsQuality }

  /// Returns the differences from `old`.
  package func changes(from old: CameraConfiguration) -> Set<CameraChange> {
    var changed = changedSettings(from: old)
    // Slices of one packet each follow the smallest packet.
    if encoding.sliceSize == .packet, payloadLimit != old.payloadLimit { changed.insert(.sliceSize) }
    // An unchanged destination whose port for sound another camera takes, or gives back.
    if destinations.map(\.soundPort.isTaken) != old.destinations.map(\.soundPort.isTaken) { changed.insert(.to) }
    return Set(changed.lazy.map(CameraChange.setting))
  }

  /// Returns the present value of what has changed, for people.
  package func text(of change: CameraChange) -> String {
    guard case .setting(let setting) = change else { return change.name }
    if case .flag(let isSet) = options[setting.rawValue]?.value { return "\(change.name): \(isSet)" }
    let words = options[setting.rawValue]?.words ?? []
    let value = words.map { $0.split(separator: "=", maxSplits: 1).last.map(String.init) ?? "" }.joined(separator: " ")
    return "\(change.name): \(options[setting.rawValue] == nil ? "as usual" : value)"
  }
}

/// The source of a stream's pictures.
package enum SourceSelection: Hashable, Sendable {
  /// The first camera, or the synthetic one.
  case auto
  /// The synthetic camera.
  case test
  /// A camera by its device node.
  case device(String)
  /// A YUV4MPEG2 file.
  case file(String)

  init(text: String) throws(ValueError) {
    switch text {
    case "auto": self = .auto
    case "test": self = .test
    case _ where text.hasPrefix("file:"):
      let path = String(text.dropFirst("file:".count))
      guard !path.isEmpty else { throw ValueError("write file:CLIP.y4m") }
      self = .file(path)
    case _ where text.hasPrefix("/"): self = .device(text)
    default:
      throw ValueError("choose auto, test, a device such as /dev/video0, or file:CLIP.y4m")
    }
  }

  package var isFile: Bool {
    if case .file = self { return true }
    return false
  }

  /// `true` if the source may be a camera.
  package var isCamera: Bool {
    switch self {
    case .auto, .device: true
    case .test, .file: false
    }
  }
}

/// The settings for a stream without its camera.
package struct CameraLoss: Hashable, Sendable {
  /// The reaction to the loss of a camera.
  package enum Reaction: String, CaseIterable, Sendable {
    /// The stream goes on with a picture that tells the loss.
    case placeholder
    /// The program ends.
    case exit
  }

  /// `true` if the stream begins without its camera.
  package var waits = false
  var given: Reaction?

  /// The reaction that the source is configured with.
  package var survival: CameraSurvival { waits ? .always : reaction == .exit ? .none : .onceStarted }

  /// The reaction to the loss of a camera.
  package var reaction: Reaction { given ?? .placeholder }
}
