#if X264
  import CX264
  import Media
  import Platform
  import Synchronization

  /// The delivery of a picture's slices while x264 codes the rest of the picture.
  ///
  /// x264 calls ``take`` with each NAL unit once it is coded (`nalu_process`). With one thread, it calls on the thread
  /// that encodes; otherwise on its own threads, several at a time and in any order. A slice that is ready early waits
  /// for those before it.
  ///
  /// All memory that a picture may need is allocated at the start; its pages stay untouched until a picture needs them.
  final class SliceDelivery: @unchecked Sendable {
    // Sendable: all mutable state is under `state`, except the bytes of a NAL unit. The thread that claimed them writes
    // them before it adds the NAL unit to `state`.

    /// A slice in ``memory``.
    private struct Slice {
      var nalUnit: NALUnit
      var firstMacroblock: Int
      var lastMacroblock: Int
    }

    /// The sink for a picture's parts.
    private struct Recipient: @unchecked Sendable {
      // Sendable: called by one thread at a time, under the lock, during the call that lent the sink.
      let sink: any AccessUnitSink
    }

    private struct State {
      var recipient: Recipient?
      var timestamp = Instant.zero
      var captured = Instant.zero
      /// The number of bytes of ``memory`` that are claimed for this picture.
      var claimed = 0
      /// The end index of the next part in ``nalUnits``.
      var ready = SliceDelivery.setCount
      /// `true` if a refresh begins with this picture.
      var isRecoveryPoint = false
      /// The number of slices that wait for those before them.
      var waiting = 0
      /// The number of NAL units of this picture, delivered or not.
      var units = 0
      /// The first macroblock of the next slice to deliver.
      var next = 0
      /// The first macroblock of the next part.
      var partStart = 0
      var isKeyFrame = false
      var failure: EncoderError?
    }

    private let state = Mutex(State())
    private let memory: UnsafeMutableRawBufferPointer
    private let waiting: UnsafeMutableBufferPointer<Slice>
    /// The parameter sets, followed by the NAL units of the next part.
    private let nalUnits: UnsafeMutableBufferPointer<NALUnit>
    private let macroblocks: Int
    /// The owner of the memory of the parameter sets.
    private let sets: SetUnits

    /// The number of bytes that `x264_nal_encode` may write for one NAL unit beyond one and a half times its size
    /// (x264.h).
    private static let margin = 5 + 64
    /// The maximum number of parts of a picture, because each part wakes the network's thread.
    private static let partLimit = 16
    /// The number of parameter sets: the SPS and the PPS.
    private static let setCount = 2

    /// Creates a delivery for an encoder of pictures of `size`; `sets` are sent before each IDR picture.
    init(_ sets: SetUnits, size: PictureSize) {
      macroblocks = ((size.width + 15) / 16) * ((size.height + 15) / 16)
      // Room for the largest picture that is sent, three bytes per pixel; half as much again for x264; and an overhead
      // for each slice. Unneeded pages are never touched.
      memory = .allocate(
        byteCount: size.pixels * 5 + 65_536 + Self.margin * AccessUnit.nalUnitLimit, alignment: 16)
      waiting = .allocate(capacity: AccessUnit.nalUnitLimit)
      nalUnits = .allocate(capacity: AccessUnit.nalUnitLimit)
      self.sets = sets
      for (index, set) in sets.units.enumerated() { nalUnits.initializeElement(at: index, to: set) }
    }

    deinit {
      memory.deallocate()
      waiting.deallocate()
      nalUnits.deallocate()
    }

    /// The value that x264 gets with a picture, so that ``take`` finds this object. Pictures without it are not
    /// delivered.
    var opaque: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    /// Receives a coded NAL unit from x264.
    static func take(
      _ encoder: OpaquePointer?, _ unit: UnsafeMutablePointer<x264_nal_t>?, _ opaque: UnsafeMutableRawPointer?
    ) {
      guard let encoder, let unit, let opaque else { return }
      Unmanaged<SliceDelivery>.fromOpaque(opaque).takeUnretainedValue().take(unit, from: encoder)
    }

    /// Encodes a picture by `encode`, and lends its parts to `sink` until `encode` returns.
    func withPicture(
      timestamp: Instant, captured: Instant, to sink: any AccessUnitSink, encode: () -> CInt
    ) -> CInt {
      let recipient = Recipient(sink: sink)
      state.withLock {
        $0 = State()
        $0.recipient = recipient
        $0.timestamp = timestamp
        $0.captured = captured
      }
      defer { state.withLock { $0.recipient = nil } }
      return encode()
    }

    /// Checks that the last picture was delivered completely.
    ///
    /// - Throws: ``/Media/EncoderError/output(library:_:)`` if it was not.
    func check() throws(EncoderError) {
      let (failure, next) = state.withLock { ($0.failure, $0.next) }
      if let failure { throw failure }
      guard next == macroblocks else {
        throw .output(library: "x264", "slices of \(next) macroblocks of \(macroblocks)")
      }
    }

    private func take(_ unit: UnsafeMutablePointer<x264_nal_t>, from encoder: OpaquePointer) {
      let needed = Int(unit.pointee.i_payload) * 3 / 2 + Self.margin
      let offset: Int? = state.withLock { state in
        guard state.failure == nil, state.recipient != nil else { return nil }
        guard memory.count - state.claimed >= needed, state.units + Self.setCount < AccessUnit.nalUnitLimit else {
          state.failure = .output(
            library: "x264",
            "a NAL unit of \(unit.pointee.i_payload) bytes has no room behind \(state.units) of the same picture")
          return nil
        }
        defer { (state.claimed, state.units) = (state.claimed + needed, state.units + 1) }
        return state.claimed
      }
      guard let offset else { return }
      // The slowest part, which several threads may do at a time.
      let claimed = memory.baseAddress.unsafelyUnwrapped + offset
      x264_nal_encode(encoder, claimed.assumingMemoryBound(to: UInt8.self), unit)
      let coded = unit.pointee
      guard let nalUnit = NALUnit(coded.bytes) else { return }
      state.withLock { state in
        guard nalUnit.type == .idrSlice || nalUnit.type == .nonIDRSlice else {
          if nalUnit.isRecoveryPoint { state.isRecoveryPoint = true }
          return add(nalUnit, &state)
        }
        insert(
          Slice(nalUnit: nalUnit, firstMacroblock: Int(coded.i_first_mb), lastMacroblock: Int(coded.i_last_mb)), &state)
        deliverReady(&state)
      }
    }

    private func add(_ nalUnit: NALUnit, _ state: inout State) {
      nalUnits.initializeElement(at: state.ready, to: nalUnit)
      state.ready += 1
    }

    private func insert(_ slice: Slice, _ state: inout State) {
      waiting.initializeElement(at: state.waiting, to: slice)
      state.waiting += 1
    }

    /// Removes and returns the next slice in order; nil if it is not coded yet.
    private func takeNext(_ state: inout State) -> Slice? {
      guard let index = waiting[..<state.waiting].firstIndex(where: { $0.firstMacroblock == state.next }) else {
        return nil
      }
      let slice = waiting[index]
      state.waiting -= 1
      waiting[index] = waiting[state.waiting]
      state.next = slice.lastMacroblock + 1
      return slice
    }

    /// Delivers the slices that are next in order, as one part: the first at once, the others once they make a
    /// sixteenth of the picture.
    private func deliverReady(_ state: inout State) {
      while let slice = takeNext(&state) {
        add(slice.nalUnit, &state)
        state.isKeyFrame = slice.nalUnit.type == .idrSlice
      }
      let isFirst = state.partStart == 0
      let isLast = state.next == macroblocks
      let length = state.next - state.partStart
      guard length > 0, isFirst || isLast || length >= macroblocks / Self.partLimit else { return }
      state.partStart = state.next
      let start = isFirst && (state.isKeyFrame || state.isRecoveryPoint) ? 0 : Self.setCount
      let part = AccessUnit(
        nalUnits: UnsafeBufferPointer(rebasing: nalUnits[start..<state.ready]), isKeyFrame: state.isKeyFrame,
        timestamp: state.timestamp, captured: state.captured, isFirstPart: isFirst, isLastPart: isLast)
      state.recipient?.sink.take(part)
      state.ready = Self.setCount
    }
  }

  extension NALUnit {
    /// `true` if the unit is a recovery point SEI message: decoding may start with this picture (ITU-T H.264 clause
    /// D.1.8).
    fileprivate var isRecoveryPoint: Bool {
      type == .supplementalEnhancementInformation && bytes.count > 1 && bytes[1] == 6
    }
  }

  extension x264_nal_t {
    /// The bytes after the start code.
    var bytes: UnsafeRawBufferPointer {
      // `b_long_startcode` gives the length of the start code.
      let startCode = b_long_startcode != 0 ? 4 : 3
      return UnsafeRawBufferPointer(start: p_payload + startCode, count: Int(i_payload) - startCode)
    }
  }
#endif
