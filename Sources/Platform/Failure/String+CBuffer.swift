extension String {
  /// Creates a string from a buffer that a C function has filled: UTF-8 up to the first zero byte. Without a zero byte,
  /// as after a call that truncates, the whole buffer counts. Invalid UTF-8 becomes U+FFFD.
  package init(cBuffer buffer: [CChar]) {
    self = buffer.withUnsafeBytes { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }
}
