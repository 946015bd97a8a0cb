import CVA
import Glibc
import Media

/// A driver, opened by way of a render node: libva's display. Ends it, and closes the node, when the last of what was
/// made with it is gone; everything that is keeps a reference.
final class VADisplayConnection {
  /// libva's handle.
  let handle: VADisplay
  /// What the driver says that it is, at most ``textLimit`` bytes of it.
  let vendor: String
  private let descriptor: CInt

  /// How much of a driver's text is taken.
  static let textLimit = 256

  /// Opens `node` and loads the driver for it.
  ///
  /// - Throws: ``EncoderError``: what ``RenderNode/open()`` throws, and where no driver takes the node.
  init(_ node: RenderNode) throws(EncoderError) {
    let descriptor = try node.open()
    guard let display = vaGetDisplayDRM(descriptor) else {
      close(descriptor)
      throw .unavailable("\(node.path) is not a render node that libva takes")
    }
    // What libva has to say, it says in status codes as well; the program's output is its own.
    vaSetInfoCallback(display, nil, nil)
    vaSetErrorCallback(display, nil, nil)
    var major: CInt = 0
    var minor: CInt = 0
    let status = vaInitialize(display, &major, &minor)
    guard status == VA_STATUS_SUCCESS else {
      // Frees the display itself; there is no driver yet to be told.
      vaTerminate(display)
      close(descriptor)
      throw .call(
        library: "VA-API", function: "vaInitialize", code: Int(status),
        reason: "\(Self.text(vaErrorStr(status))); is a driver for \(node.path) installed "
          + "(intel-media-va-driver, mesa-va-drivers)?")
    }
    handle = display
    self.descriptor = descriptor
    vendor = Self.text(vaQueryVendorString(display))
  }

  deinit {
    vaTerminate(handle)
    close(descriptor)
  }

  /// A C string of the driver's, bounded, printable characters alone; empty where there is none.
  static func text(_ string: UnsafePointer<CChar>?) -> String {
    guard let string else { return "" }
    let bytes = UnsafeRawBufferPointer(start: string, count: strnlen(string, textLimit))
    return String(decoding: bytes.map { (0x20...0x7e).contains($0) ? $0 : 0x3f }, as: UTF8.self)
  }
}

/// Passes success on and throws everything else.
///
/// - Throws: ``EncoderError/call(library:function:code:reason:)`` with libva's code and words.
@inline(__always)
func check(_ status: VAStatus, _ function: StaticString) throws(EncoderError) {
  guard status == VA_STATUS_SUCCESS else { throw failure(status, function) }
}

/// The error for a status that is none of success.
@inline(never)
func failure(_ status: VAStatus, _ function: StaticString) -> EncoderError {
  .call(
    library: "VA-API", function: "\(function)", code: Int(status),
    reason: VADisplayConnection.text(vaErrorStr(status)))
}
