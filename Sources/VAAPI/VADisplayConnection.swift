import CVA
import Glibc
import Media
import Platform

/// A driver that is opened through a render node: libva's display. Every object created from it keeps a reference. When
/// the last one is released, the display is terminated and the node closed.
final class VADisplayConnection {
  /// The display handle of libva.
  let handle: VADisplay
  /// The driver's vendor string, at most ``textLimit`` bytes of it.
  let vendor: String
  private let descriptor: FileDescriptor

  /// The maximum number of bytes that are taken from a driver's text.
  static let textLimit = 256

  /// Opens `node` and loads the driver for it.
  ///
  /// - Throws: ``EncoderError`` as ``RenderNode/open()`` does, or if no driver accepts the node.
  init(_ node: RenderNode) throws(EncoderError) {
    let descriptor = try node.open()
    guard let display = vaGetDisplayDRM(descriptor.number) else {
      throw .unavailable("\(node.path) is not a render node that libva takes")
    }
    // libva reports the same failures by status codes. It must not write to the program's output.
    vaSetInfoCallback(display, nil, nil)
    vaSetErrorCallback(display, nil, nil)
    var major: CInt = 0
    var minor: CInt = 0
    let status = vaInitialize(display, &major, &minor)
    guard status == VA_STATUS_SUCCESS else {
      // Frees the display itself; no driver is loaded yet.
      vaTerminate(display)
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
    // Before the descriptor is closed, which happens after this body.
    vaTerminate(handle)
  }

  /// Returns a C string of the driver with bounded length and printable characters only; empty if there is none.
  static func text(_ string: UnsafePointer<CChar>?) -> String {
    guard let string else { return "" }
    let bytes = UnsafeRawBufferPointer(start: string, count: strnlen(string, textLimit))
    return String(decoding: bytes.map { (0x20...0x7e).contains($0) ? $0 : 0x3f }, as: UTF8.self)
  }
}

/// Returns if `status` is success, and throws otherwise.
///
/// - Throws: ``EncoderError/call(library:function:code:reason:)`` with libva's code and text.
@inline(__always)
func check(_ status: VAStatus, _ function: StaticString) throws(EncoderError) {
  guard status == VA_STATUS_SUCCESS else { throw failure(status, function) }
}

/// Returns the error for a status other than success.
@inline(never)
func failure(_ status: VAStatus, _ function: StaticString) -> EncoderError {
  .call(
    library: "VA-API", function: "\(function)", code: Int(status),
    reason: VADisplayConnection.text(vaErrorStr(status)))
}
