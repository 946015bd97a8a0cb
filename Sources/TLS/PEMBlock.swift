import COpenSSL

/// One block of a PEM file (RFC 7468): the contents between its lines of dashes.
struct PEMBlock {
  /// The label, such as `CERTIFICATE`.
  let label: String
  /// The block's content.
  let bytes: [UInt8]
  /// `true` if the block needs a passphrase: for PKCS #8 by its label, for the older format by its header.
  let isEncrypted: Bool

  /// Returns the blocks of a file, in order; text between them is ignored.
  ///
  /// - Throws: ``OpenSSLError`` for a malformed block.
  static func all(in text: [UInt8]) throws(OpenSSLError) -> [PEMBlock] {
    ERR_clear_error()
    guard let file = nightjar_memory_bio() else { throw OpenSSLError("reading PEM") }
    defer { BIO_free(file) }
    guard text.isEmpty || BIO_write(file, text, CInt(text.count)) == text.count else {
      throw OpenSSLError("reading PEM")
    }
    var blocks: [PEMBlock] = []
    while let block = try next(of: file) { blocks.append(block) }
    return blocks
  }

  private static func next(of file: OpaquePointer) throws(OpenSSLError) -> PEMBlock? {
    var (label, header): (UnsafeMutablePointer<CChar>?, UnsafeMutablePointer<CChar>?) = (nil, nil)
    var content: UnsafeMutablePointer<UInt8>?
    var count = 0
    guard PEM_read_bio(file, &label, &header, &content, &count) == 1 else {
      let isEnd = nightjar_is_reason(ERR_peek_last_error(), CInt(ERR_LIB_PEM), PEM_R_NO_START_LINE) != 0
      let error = OpenSSLError("reading PEM")
      guard isEnd else { throw error }
      return nil
    }
    defer {
      CRYPTO_free(label, nil, 0)
      CRYPTO_free(header, nil, 0)
      CRYPTO_clear_free(content, count, nil, 0)
    }
    guard let label, let header else { return nil }
    let name = String(cString: label)
    return PEMBlock(
      label: name, bytes: Array(UnsafeBufferPointer(start: content, count: count)),
      isEncrypted: name == "ENCRYPTED PRIVATE KEY" || String(cString: header).contains("ENCRYPTED"))
  }

  /// Returns the text that `write` writes into a file.
  static func text(_ step: String, _ write: (OpaquePointer) -> CInt) throws(OpenSSLError) -> String {
    ERR_clear_error()
    guard let file = nightjar_memory_bio() else { throw OpenSSLError(step) }
    defer { BIO_free(file) }
    guard write(file) == 1 else { throw OpenSSLError(step) }
    var contents: UnsafeMutablePointer<CChar>?
    let count = nightjar_memory_bio_contents(file, &contents)
    return String(decoding: UnsafeRawBufferPointer(start: contents, count: count), as: UTF8.self)
  }
}
