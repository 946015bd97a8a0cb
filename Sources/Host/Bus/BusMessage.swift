import CSystemd

/// A bus message, which is written or read from its first argument to the last. Only the connection's thread may use
/// it.
package final class BusMessage {
  let pointer: OpaquePointer

  /// Takes ownership of a reference.
  init(_ pointer: OpaquePointer) { self.pointer = pointer }

  deinit { sd_bus_message_unref(pointer) }

  /// The object that the message addresses or comes from.
  package var path: String { sd_bus_message_get_path(pointer).map { String(cString: $0) } ?? "" }
  /// The sender's unique name, which the bus itself guarantees.
  package var sender: String { sd_bus_message_get_sender(pointer).map { String(cString: $0) } ?? "" }
  /// The name of the method or signal.
  package var member: String { sd_bus_message_get_member(pointer).map { String(cString: $0) } ?? "" }

  // MARK: Writing

  /// Appends an INT32.
  package func append(_ value: Int32) throws(BusError) { try append("i", value) }
  /// Appends a UINT32.
  package func append(_ value: UInt32) throws(BusError) { try append("u", value) }
  /// Appends a UINT16.
  package func append(_ value: UInt16) throws(BusError) { try append("q", value) }

  /// Appends a STRING.
  package func append(_ text: String) throws(BusError) {
    let result = text.withCString { sd_bus_message_append_basic(pointer, Self.type("s"), $0) }
    try check(result)
  }

  /// Appends an array of arrays of bytes (`aay`).
  package func append(_ arrays: [[UInt8]]) throws(BusError) {
    try check(sd_bus_message_open_container(pointer, Self.type("a"), "ay"))
    for bytes in arrays { try check(sd_bus_message_append_array(pointer, Self.type("y"), bytes, bytes.count)) }
    try check(sd_bus_message_close_container(pointer))
  }

  private func append<Value: FixedWidthInteger>(_ type: Unicode.Scalar, _ value: Value) throws(BusError) {
    var value = value
    try check(sd_bus_message_append_basic(pointer, Self.type(type), &value))
  }

  // MARK: Reading

  /// Reads an INT32.
  package func int32() throws(BusError) -> Int32 { try read("i", Int32.zero) }
  /// Reads a UINT32.
  package func uint32() throws(BusError) -> UInt32 { try read("u", UInt32.zero) }
  /// Reads a UINT16.
  package func uint16() throws(BusError) -> UInt16 { try read("q", UInt16.zero) }

  /// Reads a STRING of at most `limit` bytes.
  package func string(limit: Int) throws(BusError) -> String { try text("s", limit) }
  /// Reads an OBJECT_PATH.
  package func objectPath() throws(BusError) -> String { try text("o", 255) }

  /// Reads a VARIANT that holds a BOOLEAN.
  package func variantBoolean() throws(BusError) -> Bool {
    try require(sd_bus_message_enter_container(pointer, Self.type("v"), "b"))
    return try read("b", CInt.zero) != 0
  }

  /// Reads a VARIANT that holds a STRING of at most `limit` bytes.
  package func variantString(limit: Int) throws(BusError) -> String {
    try require(sd_bus_message_enter_container(pointer, Self.type("v"), "s"))
    return try text("s", limit)
  }

  /// Reads an array of arrays of bytes (`aay`): the first `count` arrays, and the first `limit` bytes of each.
  package func byteArrays(count: Int, limit: Int) throws(BusError) -> [[UInt8]] {
    try check(sd_bus_message_enter_container(pointer, Self.type("a"), "ay"))
    var arrays: [[UInt8]] = []
    while arrays.count < count {
      var start: UnsafeRawPointer?
      var size = 0
      let result = sd_bus_message_read_array(pointer, Self.type("y"), &start, &size)
      guard result != 0 else { break }
      try check(result)
      arrays.append([UInt8](UnsafeRawBufferPointer(start: start, count: min(size, limit))))
    }
    while arrays.count == count {
      let result = sd_bus_message_skip(pointer, "ay")
      // No data or no readable data is left; the data before count.
      guard result > 0 else { break }
    }
    try check(sd_bus_message_exit_container(pointer))
    return arrays
  }

  private func read<Value: FixedWidthInteger>(_ type: Unicode.Scalar, _ zero: Value) throws(BusError) -> Value {
    var value = zero
    try require(sd_bus_message_read_basic(pointer, Self.type(type), &value))
    return value
  }

  private func text(_ type: Unicode.Scalar, _ limit: Int) throws(BusError) -> String {
    var text: UnsafePointer<CChar>?
    try require(sd_bus_message_read_basic(pointer, Self.type(type), &text))
    guard let text else { throw .unreadable(member) }
    var length = 0
    while length <= limit, text[length] != 0 { length += 1 }
    guard length <= limit else { throw .unreadable("\(member) with a text of more than \(limit) bytes") }
    return String(decoding: UnsafeRawBufferPointer(start: text, count: length), as: UTF8.self)
  }

  private static func type(_ scalar: Unicode.Scalar) -> CChar { CChar(truncatingIfNeeded: scalar.value) }

  private func check(_ result: CInt) throws(BusError) {
    guard result >= 0 else { throw .unreadable(member) }
  }

  private func require(_ result: CInt) throws(BusError) {
    guard result > 0 else { throw .unreadable(member) }
  }
}
