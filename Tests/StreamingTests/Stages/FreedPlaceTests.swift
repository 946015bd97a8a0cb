import Capture
import Media
import Platform
import Sound
import Streaming
import Synchronization
import Testing

/// The places of viewers of JPEG pictures and of listeners of MP3, of which there are few.
@Suite struct FreedPlaceTests {
  private final class Entry: Sendable {
    /// `true` if another one found room when a viewer had left.
    let isFound = Mutex<Bool?>(nil)
  }

  private func pipeline() throws -> Pipeline {
    try Pipeline(
      source: try SyntheticCamera(size: PictureSize(width: 64, height: 64), frameRate: .thirty),
      encoder: try SizedEncoder(keyBytes: 3000, bytes: 500), destinations: [],
      sound: (try ToneSource(), SoundSettings()), keyFrameInterval: Duration(seconds: 1000))
  }

  @Test func `a viewer of pictures that leaves tells so once there is room for another`() throws {
    let (pipeline, entry) = (try pipeline(), Entry())
    var viewers = try (0..<PictureStage.viewerLimit).map { number in
      try pipeline.look("\(number)") { entry.isFound.withLock { $0 = (try? pipeline.look("another")) != nil } }
    }
    #expect(throws: LiveViewerError.tooMany(.pictures, limit: PictureStage.viewerLimit)) {
      try pipeline.look("one more")
    }
    #expect(entry.isFound.withLock { $0 } == nil)
    viewers.removeLast()
    #expect(entry.isFound.withLock { $0 } == true)
  }

  @Test func `a listener that leaves tells so once there is room for another`() throws {
    let (pipeline, entry) = (try pipeline(), Entry())
    var listeners = try (0..<MP3Stage.listenerLimit).map { number in
      try pipeline.listen("\(number)") { entry.isFound.withLock { $0 = (try? pipeline.listen("another")) != nil } }
    }
    #expect(throws: LiveViewerError.tooMany(.sound, limit: MP3Stage.listenerLimit)) { try pipeline.listen("one more") }
    #expect(entry.isFound.withLock { $0 } == nil)
    listeners.removeLast()
    #expect(entry.isFound.withLock { $0 } == true)
  }
}
