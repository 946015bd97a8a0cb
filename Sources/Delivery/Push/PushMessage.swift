package import TLS

/// A message for a browser, which the push service cannot read: RFC 8291, in the form of RFC 8188 (`aes128gcm`).
package struct PushMessage {
  /// The whole body of the request.
  package let bytes: [UInt8]

  /// The record size that the header names. There is one record, and it is shorter.
  private static let recordBytes: UInt32 = 4096
  /// The bytes of a record that are no plaintext: the delimiter and the tag.
  private static let overhead = 1 + AES128GCM.tagBytes
  private static let saltBytes = 16
  /// The multiple of bytes to which a plaintext is padded, so that its length says nothing of the event.
  package static let block = 512

  /// Encrypts a message, with a key and a salt that are used once.
  ///
  /// - Throws: `OpenSSLError`.
  package init(_ plaintext: [UInt8], to subscription: PushSubscription) throws(OpenSSLError) {
    let padding = (Self.block - plaintext.count % Self.block) % Self.block
    try self.init(
      plaintext, padding: padding, to: subscription.publicKey, secret: subscription.secret, key: try PrivateKey(),
      salt: Secrets.randomBytes(Self.saltBytes))
  }

  /// Encrypts a message.
  ///
  /// - Parameters:
  ///   - padding: the number of bytes that hide the length.
  ///   - receiver: the browser's public key, a point on P-256.
  ///   - secret: the browser's authentication secret.
  ///   - key: the key of this message alone.
  ///   - salt: 16 random bytes.
  /// - Throws: `OpenSSLError`.
  package init(
    _ plaintext: [UInt8], padding: Int, to receiver: [UInt8], secret: [UInt8], key: PrivateKey, salt: [UInt8]
  ) throws(OpenSSLError) {
    precondition(plaintext.count + padding + Self.overhead <= Int(Self.recordBytes), "a message is one record")
    let sender = try key.publicPoint
    let hash = HashFunction.sha256
    // RFC 8291 section 3.4.
    let keying = hash.derivedKey(
      of: try key.sharedSecret(with: receiver), salt: secret, info: Self.label("WebPush: info") + receiver + sender,
      count: 32)
    // RFC 8188 sections 2.2 and 2.3. The nonce of the first record is the one that is derived.
    let cipherKey = hash.derivedKey(
      of: keying, salt: salt, info: Self.label("Content-Encoding: aes128gcm"), count: AES128GCM.keyBytes)
    let nonce = hash.derivedKey(
      of: keying, salt: salt, info: Self.label("Content-Encoding: nonce"), count: AES128GCM.nonceBytes)
    // Section 2.1: salt, record size, length of the key's name, the name, which is the sender's public key.
    let size = (0..<4).map { UInt8(truncatingIfNeeded: Self.recordBytes >> (24 - 8 * UInt32($0))) }
    let header = salt + size + [UInt8(sender.count)] + sender
    // Section 2: 2 ends the plaintext of the last record, zeros follow.
    let record = plaintext + [2] + [UInt8](repeating: 0, count: padding)
    bytes = header + (try AES128GCM.seal(record, key: cipherKey, nonce: nonce))
  }

  private static func label(_ text: String) -> [UInt8] { Array(text.utf8) + [0] }
}
