package import Media
package import Platform
import Synchronization

/// A receiver of a track's access units: the send stage, a recorder, or a session of another protocol
/// (``Pipeline/add(_:to:)``).
///
/// The calls come one at a time, from the encoder's thread; the last one, ``close()``, may come from another thread. A
/// consumer copies what it needs before it returns, because the bytes are gone with the next access unit, and does not
/// wait. Where a consumer has no room, it drops for itself and counts that; nothing after a dropped picture can be
/// decoded up to the next key frame. A consumer may come in the middle of a picture: it begins with the first part of a
/// key frame.
package protocol CodedPictureConsumer: AnyObject, Sendable {
  /// Takes a copy of an access unit, or of a part of one.
  func take(_ unit: borrowing AccessUnit)
  /// Ends an access unit of which no more parts come, because the encoder has failed. A key frame follows.
  func breakOff()
  /// Ends the track: nothing follows.
  func close()
}

/// The consumers of one track: the queue of its send stage, and others, which come and go.
///
/// Only the queue may hold the encoder up, and only in ``reserve()``, before a frame is taken from the mailbox: that is
/// how a slow network makes the mailbox drop frames. The others get an access unit after the send stage has it.
package final class CodedPictureConsumers: @unchecked Sendable {
  // Sendable: the list is under a mutex; all else belongs to the encoder's thread.
  let first: CodedPictureWriter
  /// The others; nil once the track has ended.
  private let others = Mutex<[any CodedPictureConsumer]?>([])
  /// The number of others, to be read without the lock.
  private let otherCount = Atomic(0)
  /// Creates the consumers of a track without others.
  package init(_ pictures: CodedPictureQueue) { first = CodedPictureWriter(pictures) }

  /// Adds another consumer, or tells it that the track has ended. Any thread.
  package func add(_ consumer: any CodedPictureConsumer) {
    let isAdded = others.withLock { others in
      guard others != nil else { return false }
      others?.append(consumer)
      otherCount.store(others?.count ?? 0, ordering: .relaxed)
      return true
    }
    if !isAdded { consumer.close() }
  }

  /// Removes another consumer, which gets no call after this one. Returns `false` if it was none. Any thread but the
  /// encoder's.
  package func remove(_ consumer: any CodedPictureConsumer) -> Bool {
    others.withLock { others in
      guard let index = others?.firstIndex(where: { $0 === consumer }) else { return false }
      others?.remove(at: index)
      otherCount.store(others?.count ?? 0, ordering: .relaxed)
      return true
    }
  }

  /// Waits for room for the next access unit. Returns `false` once the send stage takes no more.
  package func reserve() -> Bool { first.reserve() }

  /// Hands an access unit, or a part of one, to all. If the send stage does not take it, no other gets it.
  ///
  /// - Parameter encoded: the time at which the encoder was done with it, which may be zero for a part.
  package func take(_ unit: borrowing AccessUnit, encoded: Instant) -> CodedPictureWriter.Outcome {
    let isFollowing = first.isOpen && !unit.isFirstPart
    // The encoder has not ended the one before.
    if unit.isFirstPart { breakOff() }
    let outcome = first.write(unit, encoded: encoded)
    if isFollowing, outcome == .tooLarge { breakOffOthers() }
    guard outcome == .taken else { return outcome }
    if otherCount.load(ordering: .relaxed) > 0 { others.withLock { for other in $0 ?? [] { other.take(unit) } } }
    return .taken
  }

  /// Ends an access unit that the encoder has not ended; does nothing where there is none.
  package func breakOff() {
    guard first.isOpen else { return }
    first.breakOff()
    breakOffOthers()
  }

  private func breakOffOthers() { others.withLock { for other in $0 ?? [] { other.breakOff() } } }

  /// Ends the track for all.
  package func close() {
    first.close()
    closeOthers()
  }

  /// Ends the track for the consumers beside the send stage. Any thread.
  func closeOthers() {
    let ended = others.withLock { others in
      defer { others = nil }
      return others ?? []
    }
    for other in ended { other.close() }
  }
}

/// The send stage as a consumer: the writing end of its queue. The encoder's thread uses it.
package final class CodedPictureWriter: CodedPictureConsumer, @unchecked Sendable {
  // Sendable: the encoder's thread alone uses it, but for the queue.
  private let pictures: CodedPictureQueue
  /// The room for the next access unit.
  private var room: CodedPicture?
  /// A picture of which only some parts were handed on.
  private var open: CodedPicture?

  /// The outcome for an access unit, or for a part of one.
  package enum Outcome {
    /// The send stage has the part.
    case taken
    /// The queue is closed, or an earlier part of the access unit was not taken.
    case closed
    /// The access unit is larger than the queue's buffers.
    case tooLarge
  }

  /// Creates the writing end of `pictures`.
  init(_ pictures: CodedPictureQueue) { self.pictures = pictures }

  /// `true` if parts follow of the access unit that was written last.
  var isOpen: Bool { open != nil }

  /// Waits for room for the next access unit. Returns `false` once the queue is closed.
  func reserve() -> Bool {
    if room == nil { room = pictures.beginWrite() }
    return room != nil
  }

  package func take(_ unit: borrowing AccessUnit) { _ = write(unit, encoded: unit.isLastPart ? .now() : .zero) }

  /// Hands an access unit, or a part of one, on to the send stage. Waits where a call delivers more access units than
  /// there is room for, as with lookahead.
  func write(_ unit: borrowing AccessUnit, encoded: Instant) -> Outcome {
    if unit.isFirstPart { breakOff() }
    guard let picture = unit.isFirstPart ? room ?? pictures.beginWrite() : open else { return .closed }
    guard picture.store(unit) else {
      // Its room is that of the next.
      if unit.isFirstPart { room = picture } else { breakOff() }
      return .tooLarge
    }
    if unit.isFirstPart { room = nil }
    if !unit.isWhole { open = unit.isLastPart ? nil : picture }
    pictures.commit(picture, encoded: encoded, isEnded: unit.isLastPart)
    return .taken
  }

  package func breakOff() {
    guard let picture = open else { return }
    pictures.breakOff(picture)
    open = nil
  }

  package func close() {
    giveBack()
    pictures.close()
  }

  /// Ends the writing, and leaves the queue to another writer.
  func rest() {
    breakOff()
    giveBack()
  }

  private func giveBack() {
    if let room { pictures.abandon(room) }
    room = nil
  }
}
