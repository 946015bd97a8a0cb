import Platform
import Streaming
import Synchronization

/// The last pictures of one pipeline, of which an event takes the one before it and the one after it.
///
/// Each two seconds it asks for one JPEG as a viewer would, so that the frame path does nothing for it but the copy of that
/// frame into memory that is there. A camera keeps no pictures of its own for it.
final class EventCamera: Sendable {
  /// The time from one picture to the next.
  static let interval = Duration.seconds(2)
  /// The pictures that are kept: a noise of less than four seconds has one from before it.
  static let count = 3
  private static let patience = Duration.seconds(5)
  /// The age at which a picture is none of before an event any more: the camera was away, or delivers no samples.
  private static let freshness = Duration.seconds(15)

  private let ring: Ring
  private let task: Task<Void, Never>

  /// The pictures, oldest first.
  private final class Ring: Sendable {
    let pictures = Mutex<[LivePicture]>([])

    func add(_ picture: LivePicture) {
      pictures.withLock { pictures in
        if pictures.count == count { pictures.removeFirst() }
        pictures.append(picture)
      }
    }
  }

  /// Begins to take pictures.
  init(_ pipeline: Pipeline) {
    let ring = Ring()
    self.ring = ring
    task = Task.detached { [weak pipeline] in
      // A pipeline that has as many viewers as are allowed has room later.
      var viewer: LiveViewer<LivePicture>?
      while !Task.isCancelled {
        let next = Instant.now() + Self.interval
        if viewer == nil { viewer = try? pipeline?.look("events", isSnapshot: true, demands: false) }
        do {
          // A placeholder shows nothing of the room.
          if let picture = try await viewer?.next(until: .now() + Self.patience), !picture.isPlaceholder {
            ring.add(picture)
          }
        } catch LiveViewerError.ended {
          return
        } catch {
          // No picture came in time, or it cannot be encoded.
        }
        let rest = next - .now()
        // It throws only where the task is cancelled, which ends the loop.
        if rest > .zero { try? await Task.sleep(nanoseconds: UInt64(rest.nanoseconds)) }
      }
    }
  }

  deinit { task.cancel() }

  /// Returns the newest picture that was taken before `time`, or else the oldest one; nil if there is no fresh one.
  func picture(before time: Instant) -> [UInt8]? {
    let oldest = time - Self.freshness
    return ring.pictures.withLock { pictures in
      let fresh = pictures.drop { $0.captured < oldest }
      return (fresh.last { $0.captured < time } ?? fresh.first)?.bytes
    }
  }

  /// Returns the newest picture; nil if there is no fresh one.
  func newestPicture(at now: Instant) -> [UInt8]? {
    ring.pictures.withLock { pictures in pictures.last { $0.captured >= now - Self.freshness }?.bytes }
  }

  /// Returns the oldest picture that was taken at `time` or later; nil if there is none yet.
  func picture(after time: Instant) -> [UInt8]? {
    ring.pictures.withLock { pictures in pictures.first { $0.captured >= time }?.bytes }
  }
}
