import CAVCodec
import Media
import Platform

/// An open decoder of libavcodec, on hardware or in software: the only user of the library.
final class CodecSession: @unchecked Sendable {
  // Sendable: the decoder uses it under its lock only.

  /// The reason why libavcodec refuses something.
  struct Fault: Error {
    let code: CInt
    /// libavcodec's own words.
    let reason: String

    init(_ code: CInt) {
      self.code = code
      var text = [CChar](repeating: 0, count: 128)
      av_strerror(code, &text, text.count)
      reason = String(cBuffer: text)
    }

    /// A picture of which a part was not decoded.
    static let incomplete = Fault(nightjar_av_error_data, "a part of it is missing")

    private init(_ code: CInt, _ reason: String) { (self.code, self.reason) = (code, reason) }

    /// `true` if the data are at fault, not the decoder.
    var isOfData: Bool { code == nightjar_av_error_data }
    /// `true` if memory is short.
    var isOfMemory: Bool { code == nightjar_av_error_memory }
  }

  /// `true` if hardware decodes, as far as it is known: a driver may refuse a stream once its parameter sets come.
  private(set) var isHardware: Bool
  /// `true` if the driver has refused the stream, and software decodes it.
  private(set) var isRefused = false
  /// `true` while references may be missing that no picture needs: libavcodec goes on after what it takes for errors of the
  /// data. A picture of which a part is not decoded is still a ``Fault``.
  var isLenient = false {
    didSet {
      context.pointee.err_recognition = isLenient ? nightjar_av_tolerates_errors : nightjar_av_detects_errors
    }
  }
  /// The codec that it decodes.
  let codec: VideoCodec
  private let threads: Int
  private let context: UnsafeMutablePointer<AVCodecContext>
  private let packet: UnsafeMutablePointer<AVPacket>
  private let decoded: UnsafeMutablePointer<AVFrame>
  private let transferred: UnsafeMutablePointer<AVFrame>
  /// The picture being decoded in software.
  private var marked: MarkedPicture?
  /// The ends of the slices that were sent, and the mark at them, until the picture is checked.
  private var (ends, mark): ([SliceEnds], UInt64) = ([], 0)

  /// Opens a decoder, on the driver of `renderNode` or in software.
  convenience init(
    _ codec: VideoCodec, renderNode: String?, _ configuration: VideoDecoder.Configuration
  ) throws(Fault) {
    var device: UnsafeMutablePointer<AVBufferRef>?
    defer { av_buffer_unref(&device) }
    if let renderNode {
      let result = av_hwdevice_ctx_create(&device, AV_HWDEVICE_TYPE_VAAPI, renderNode, nil, 0)
      guard result >= 0 else { throw Fault(result) }
    }
    try self.init(
      codec, device: device, threads: configuration.threads, maximumPixels: Int64(configuration.maximumPixels),
      keptSurfaces: configuration.keepsSurfaces ? configuration.poolCapacity : 0)
  }

  /// Returns a decoder like this one that has seen nothing. What a stream has made of a decoder, such as the delay for
  /// reordering, would last otherwise.
  func begunAnew() throws(Fault) -> CodecSession {
    let device = isHardware ? context.pointee.hw_device_ctx : nil
    return try CodecSession(
      codec, device: device, threads: threads, maximumPixels: context.pointee.max_pixels,
      keptSurfaces: Int(context.pointee.extra_hw_frames))
  }

  private init(
    _ codec: VideoCodec, device: UnsafeMutablePointer<AVBufferRef>?, threads: Int, maximumPixels: Int64,
    keptSurfaces: Int
  ) throws(Fault) {
    guard let decoder = avcodec_find_decoder_by_name(codec.rawValue), let context = avcodec_alloc_context3(decoder),
      let packet = av_packet_alloc(), let decoded = av_frame_alloc(), let transferred = av_frame_alloc()
    else { throw Fault(nightjar_av_error_memory) }
    (self.context, self.packet, self.decoded, self.transferred) = (context, packet, decoded, transferred)
    (self.codec, self.threads, isHardware) = (codec, threads, device != nil)
    context.pointee.log_level_offset = nightjar_av_log_offset
    // Threads of frames would hold pictures back.
    context.pointee.thread_count = CInt(threads)
    context.pointee.thread_type = nightjar_av_thread_slice
    context.pointee.flags |= nightjar_av_flag_unaligned
    context.pointee.err_recognition = nightjar_av_detects_errors
    // What is missing must stay missing, so that it is found at once.
    nightjar_av_disable_concealment(context)
    // The gate has checked sizes already; this is for what it may have read otherwise.
    context.pointee.max_pixels = maximumPixels
    // Beyond those that the stream refers to.
    context.pointee.extra_hw_frames = CInt(keptSurfaces)
    context.pointee.opaque = Unmanaged.passUnretained(self).toOpaque()
    context.pointee.get_format = { context, formats in CodecSession.format(of: context, among: formats) }
    context.pointee.get_buffer2 = { context, frame, flags in
      let result = avcodec_default_get_buffer2(context, frame, flags)
      if result >= 0, let frame { CodecSession.of(context)?.begin(frame) }
      return result
    }
    if let device { context.pointee.hw_device_ctx = av_buffer_ref(device) }
    let result = avcodec_open2(context, decoder, nil)
    guard result >= 0 else { throw Fault(result) }
  }

  deinit {
    var (context, packet) = (Optional(context), Optional(packet))
    var (decoded, transferred) = (Optional(decoded), Optional(transferred))
    avcodec_free_context(&context)
    av_packet_free(&packet)
    av_frame_free(&decoded)
    av_frame_free(&transferred)
  }

  /// The decoder's name for people.
  var name: String {
    let version = avcodec_version()
    let way = isHardware ? "VA-API" : threads == 1 ? "1 thread" : "\(threads) threads"
    return "libavcodec \(version >> 16).\(version >> 8 & 255), \(way)"
  }

  /// Chooses the driver's surfaces while libavcodec offers them, otherwise samples in memory. libavcodec asks again, without
  /// the surfaces, where the driver refuses the stream.
  private static func format(
    of context: UnsafeMutablePointer<AVCodecContext>?, among formats: UnsafePointer<AVPixelFormat>?
  ) -> AVPixelFormat {
    guard let session = of(context), var next = formats else { return AV_PIX_FMT_NONE }
    var software = AV_PIX_FMT_NONE
    while next.pointee != AV_PIX_FMT_NONE {
      if next.pointee == AV_PIX_FMT_VAAPI, session.isHardware { return AV_PIX_FMT_VAAPI }
      let isInMemory = av_pix_fmt_desc_get(next.pointee).map { $0.pointee.flags & hardwareFlag == 0 } ?? false
      if isInMemory, software == AV_PIX_FMT_NONE { software = next.pointee }
      next += 1
    }
    if session.isHardware { (session.isHardware, session.isRefused) = (false, true) }
    return software
  }

  private static func of(_ context: UnsafeMutablePointer<AVCodecContext>?) -> CodecSession? {
    context?.pointee.opaque.map { Unmanaged<CodecSession>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Marks the memory of a picture that libavcodec is about to decode.
  private func begin(_ frame: UnsafeMutablePointer<AVFrame>) {
    marked = MarkedPicture(frame)
    marked?.write(mark, at: ends)
  }

  /// `AV_PIX_FMT_FLAG_HWACCEL`.
  private static let hardwareFlag: UInt64 = 1 << 3

  /// The slices of an access unit, with what goes before them.
  struct Slices {
    /// Parameter sets and SEI as a byte stream; empty where there are none.
    var head: [UInt8]
    /// The NAL units of the slices.
    var units: [UnsafeRawBufferPointer]
    /// The last macroblocks of the slices, of each field.
    var ends: [SliceEnds]
    /// `true` for the second field of the frame whose first one was sent before.
    var isSecondField: Bool
  }

  /// Takes `slices` as one access unit with the time stamp `number`.
  func send(_ slices: Slices, number: Int64) throws(Fault) {
    let count = slices.units.reduce(slices.head.count) { $0 + AnnexB.startCode.count + $1.count }
    let result = av_new_packet(packet, CInt(count))
    guard result >= 0, let data = packet.pointee.data else { throw Fault(min(result, nightjar_av_error_memory)) }
    defer { av_packet_unref(packet) }
    let memory = UnsafeMutableRawBufferPointer(start: data, count: count)
    memory.copyBytes(from: slices.head)
    var position = slices.head.count
    for unit in slices.units {
      UnsafeMutableRawBufferPointer(rebasing: memory[position...]).copyBytes(from: AnnexB.startCode)
      position += AnnexB.startCode.count
      UnsafeMutableRawBufferPointer(rebasing: memory[position...]).copyMemory(from: unit)
      position += unit.count
    }
    (ends, mark) = (slices.ends, .random(in: 1 ... .max))
    // The second field has the memory of the first one.
    if slices.isSecondField { marked?.write(mark, at: ends) } else { marked = nil }
    packet.pointee.pts = number
    packet.pointee.dts = nightjar_av_no_timestamp
    let sent = avcodec_send_packet(context, packet)
    guard sent >= 0 else {
      ends = []
      throw Fault(sent)
    }
  }

  /// Ends the input: `receive` returns the pictures that are held back, and nothing more can be sent.
  func end() throws(Fault) {
    let sent = avcodec_send_packet(context, nil)
    guard sent >= 0 || sent == nightjar_av_error_end else { throw Fault(sent) }
  }

  /// Returns the next picture, lent until the next call; nil where there is none now.
  func receive() throws(Fault) -> CodecPicture? {
    let result = avcodec_receive_frame(context, decoded)
    try checkEnds()
    if result == nightjar_av_error_again || result == nightjar_av_error_end { return nil }
    guard result >= 0 else { throw Fault(result) }
    guard decoded.pointee.format == AV_PIX_FMT_VAAPI.rawValue else { return CodecPicture(decoded, of: decoded) }
    av_frame_unref(transferred)
    let copied = av_hwframe_transfer_data(transferred, decoded, 0)
    guard copied >= 0 else { throw Fault(copied) }
    return CodecPicture(transferred, of: decoded)
  }

  /// Checks that the access unit sent last was decoded as a whole.
  ///
  /// - Throws: A ``Fault`` of data. The other pictures can be received.
  private func checkEnds() throws(Fault) {
    guard !ends.isEmpty else { return }
    defer { ends = [] }
    // A driver conceals what is missing: pictures of several slices never come to it.
    guard !isHardware, marked?.hasOverwritten(mark, at: ends) != true else { return }
    av_frame_unref(decoded)
    throw .incomplete
  }

  /// Returns `true` if libavcodec takes these parameter sets.
  static func accepts(_ sets: [UInt8], _ codec: VideoCodec) throws(Fault) -> Bool {
    var probe = avcodec_find_decoder_by_name(codec.rawValue).flatMap { avcodec_alloc_context3($0) }
    defer { avcodec_free_context(&probe) }
    guard let context = probe, let memory = av_mallocz(sets.count + Int(nightjar_av_padding)) else {
      throw Fault(nightjar_av_error_memory)
    }
    UnsafeMutableRawBufferPointer(start: memory, count: sets.count).copyBytes(from: sets)
    context.pointee.extradata = memory.assumingMemoryBound(to: UInt8.self)
    context.pointee.extradata_size = CInt(sets.count)
    context.pointee.thread_count = 1
    context.pointee.log_level_offset = nightjar_av_log_offset
    context.pointee.err_recognition = nightjar_av_detects_errors
    let result = avcodec_open2(context, nil, nil)
    guard result != nightjar_av_error_memory else { throw Fault(result) }
    return result >= 0
  }
}
