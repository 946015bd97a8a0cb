import Platform
import Synchronization

/// The present state beside the events, for MQTT: the cameras, their levels and pictures, and the host's temperature.
///
/// The main thread and the thread of the alerts set it, and never wait. Of each camera one picture is kept, the newest.
package final class LiveFeed: Sendable {
  /// The cameras and the figures.
  package struct Reading: Sendable {
    var cameras: [MQTTCamera] = []
    /// The loudest level of the last second in dBFS, by cameras; without those that have no sound now.
    package var levels: [String: Double] = [:]
    /// Degrees Celsius; nil if nobody knows.
    var temperature: Double?

    /// Creates a reading.
    package init(cameras: [MQTTCamera] = [], levels: [String: Double] = [:], temperature: Double? = nil) {
      (self.cameras, self.levels, self.temperature) = (cameras, levels, temperature)
    }
  }

  /// A JPEG picture.
  struct Picture: Sendable {
    let camera: String
    /// Each picture has a greater number than those before it.
    let number: UInt64
    let bytes: [UInt8]
  }

  private struct State {
    var reading = Reading()
    var pictures: [String: Picture] = [:]
    var count: UInt64 = 0
    var followers: [WakeUp] = []
  }

  /// The largest picture in bytes.
  package static let pictureLimit = 2 << 20

  private let state = Mutex(State())

  /// Creates a feed without cameras.
  package init() {}

  /// Sets the cameras of the configuration.
  package func set(_ cameras: [MQTTCamera]) {
    wake { state in
      guard state.reading.cameras != cameras else { return false }
      state.reading.cameras = cameras
      let names = Set(cameras.map(\.name))
      state.pictures = state.pictures.filter { names.contains($0.key) }
      return true
    }
  }

  /// Sets the figures, about once a second.
  ///
  /// - Parameters:
  ///   - levels: the loudest level of the last second in dBFS, by cameras.
  ///   - temperature: degrees Celsius; nil if nobody knows.
  package func set(levels: [String: Double], temperature: Double?) {
    state.withLock { ($0.reading.levels, $0.reading.temperature) = (levels, temperature) }
  }

  /// Shows a picture of a camera, if anybody follows.
  package func show(_ picture: [UInt8], of camera: String) {
    guard !picture.isEmpty, picture.count <= Self.pictureLimit else { return }
    wake { state in
      guard !state.followers.isEmpty else { return false }
      state.count += 1
      state.pictures[camera] = Picture(camera: camera, number: state.count, bytes: picture)
      return true
    }
  }

  private func wake(after change: (inout State) -> Bool) {
    let woken = state.withLock { change(&$0) ? $0.followers : [] }
    for wake in woken { wake.fire() }
  }

  /// `true` if anybody follows.
  package var isFollowed: Bool { state.withLock { !$0.followers.isEmpty } }

  /// The present state.
  var reading: Reading { state.withLock { $0.reading } }

  /// Returns the oldest picture whose number is greater than `number`; nil if there is none.
  func picture(after number: UInt64) -> Picture? {
    state.withLock { state in
      state.pictures.values.filter { $0.number > number }.min { $0.number < $1.number }
    }
  }

  /// Fires `wake` after each change of the cameras, and for each picture, from now on.
  func follow(_ wake: WakeUp) { state.withLock { $0.followers.append(wake) } }

  /// Fires `wake` no longer. Without anybody who follows, no pictures are kept.
  func unfollow(_ wake: WakeUp) {
    state.withLock { state in
      state.followers.removeAll { $0 === wake }
      if state.followers.isEmpty { state.pictures = [:] }
    }
  }
}
