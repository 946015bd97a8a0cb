extension String {
  /// What a C function has left in a buffer of its caller's: UTF-8 up to the first zero byte, or all of it where there is
  /// none, as after a call that cuts. Broken UTF-8 becomes U+FFFD.
  package init(cBuffer buffer: [CChar]) {
    self = buffer.withUnsafeBytes { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }
}
