import COpenSSL
import Foundation
import TestSupport

/// SRTP and SRTCP by the letter of RFC 3711 and RFC 7714, from openssl's AES in counter mode, its GCM and its
/// HMAC: nothing of it is the library's that is tested. It is itself held against the RFCs' examples.
struct Reference {
  /// The keys that a master key becomes, RFC 3711 section 4.3.
  struct SessionKeys: Equatable {
    var cipher: [UInt8]
    var authentication: [UInt8]
    var salt: [UInt8]
  }

  let isCounterMode: Bool
  let media: SessionKeys
  let control: SessionKeys

  /// - Parameter salt: 14 bytes for counter mode, else 12.
  init(key: [UInt8], salt: [UInt8]) throws {
    isCounterMode = salt.count == 14
    func derive(_ label: UInt8, _ count: Int) throws -> [UInt8] {
      // RFC 7714 section 11: a salt of 96 bits is filled up with zeros on the right.
      var input = salt + [UInt8](repeating: 0, count: 16 - salt.count)
      input[7] ^= label
      return try Self.counterMode([UInt8](repeating: 0, count: count), key: key, counter: input)
    }
    media = try SessionKeys(cipher: derive(0, key.count), authentication: derive(1, 20), salt: derive(2, salt.count))
    control = try SessionKeys(cipher: derive(3, key.count), authentication: derive(4, 20), salt: derive(5, salt.count))
  }

  /// AES in counter mode by openssl, which encrypts and decrypts alike.
  static func counterMode(_ data: [UInt8], key: [UInt8], counter: [UInt8]) throws -> [UInt8] {
    let directory = try TemporaryDirectory()
    let path = directory.path("in")
    try Data(data).write(to: URL(fileURLWithPath: path))
    let result = try Subprocess.run(
      [
        "openssl", "enc", "-aes-\(key.count * 8)-ctr", "-nopad", "-K", key.hex, "-iv", counter.hex, "-in", path,
      ], in: directory)
    guard result.status == 0 else { throw CocoaError(.executableLoad) }
    return Array(result.output)
  }

  /// AES-GCM, the tag behind the text.
  static func seal(_ text: [UInt8], _ associated: [UInt8], key: [UInt8], nonce: [UInt8]) throws -> [UInt8] {
    let context = EVP_CIPHER_CTX_new()
    defer { EVP_CIPHER_CTX_free(context) }
    var sealed = [UInt8](repeating: 0, count: text.count + 16)
    var count: Int32 = 0
    let isDone =
      EVP_EncryptInit_ex2(context, key.count == 16 ? EVP_aes_128_gcm() : EVP_aes_256_gcm(), key, nonce, nil) == 1
      && EVP_EncryptUpdate(context, nil, &count, associated, Int32(associated.count)) == 1
      && EVP_EncryptUpdate(context, &sealed, &count, text, Int32(text.count)) == 1
    guard isDone, nonce.count == 12, Int(count) == text.count else { throw CocoaError(.executableLoad) }
    let isTagged = sealed.withUnsafeMutableBytes { memory in
      let tag = memory.baseAddress?.advanced(by: text.count)
      var rest: Int32 = 0
      return EVP_EncryptFinal_ex(context, tag?.assumingMemoryBound(to: UInt8.self), &rest) == 1
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1
    }
    guard isTagged else { throw CocoaError(.executableLoad) }
    return sealed
  }

  /// RFC 7714 section 8.1.
  static func mediaNonce(ssrc: [UInt8], rollovers: UInt32, sequence: [UInt8], salt: [UInt8]) -> [UInt8] {
    zip([0, 0] + ssrc + rollovers.bytes + sequence, salt).map { $0 ^ $1 }
  }

  /// RFC 7714 section 9.1.
  static func controlNonce(ssrc: [UInt8], index: UInt32, salt: [UInt8]) -> [UInt8] {
    zip([0, 0] + ssrc + [0, 0] + index.bytes, salt).map { $0 ^ $1 }
  }

  /// The protected packet of a plain one with a header of 12 bytes.
  func protect(_ packet: [UInt8], rollovers: UInt32) throws -> [UInt8] {
    let (header, payload) = (Array(packet[..<12]), Array(packet[12...]))
    let (sequence, ssrc) = (Array(packet[2..<4]), Array(packet[8..<12]))
    guard isCounterMode else {
      let nonce = Self.mediaNonce(ssrc: ssrc, rollovers: rollovers, sequence: sequence, salt: media.salt)
      return try header + Self.seal(payload, header, key: media.cipher, nonce: nonce)
    }
    // RFC 3711 section 4.1.1: (salt * 2^16) XOR (SSRC * 2^64) XOR (index * 2^16).
    let position = [0, 0, 0, 0] + ssrc + rollovers.bytes + sequence + [0, 0]
    let counter = zip(position, media.salt + [0, 0]).map { $0 ^ $1 }
    let encrypted = try header + Self.counterMode(payload, key: media.cipher, counter: counter)
    return encrypted + tag(encrypted + rollovers.bytes, media.authentication)
  }

  /// The SRTCP datagram of an RTCP one.
  func protectControl(_ datagram: [UInt8], index: UInt32) throws -> [UInt8] {
    let (header, payload) = (Array(datagram[..<8]), Array(datagram[8...]))
    let ssrc = Array(datagram[4..<8])
    let trailer = (index | 1 << 31).bytes
    guard isCounterMode else {
      let nonce = Self.controlNonce(ssrc: ssrc, index: index, salt: control.salt)
      return try header + Self.seal(payload, header + trailer, key: control.cipher, nonce: nonce) + trailer
    }
    let position = [0, 0, 0, 0] + ssrc + [0, 0] + index.bytes + [0, 0]
    let counter = zip(position, control.salt + [0, 0]).map { $0 ^ $1 }
    let encrypted = try header + Self.counterMode(payload, key: control.cipher, counter: counter)
    return encrypted + trailer + tag(encrypted + trailer, control.authentication)
  }

  private func tag(_ data: [UInt8], _ key: [UInt8]) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: 20)
    _ = HMAC(EVP_sha1(), key, Int32(key.count), data, data.count, &code, nil)
    return Array(code.prefix(10))
  }
}

extension UInt32 {
  var bytes: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: self >> (24 - 8 * $0)) } }
}

extension UInt16 {
  var bytes: [UInt8] { [UInt8(self >> 8), UInt8(self & 0xff)] }
}

extension Sequence<UInt8> {
  var hex: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}

extension [UInt8] {
  /// The bytes that pairs of hexadecimal digits name; spaces and line ends are left out.
  init(hex: String) {
    let digits = hex.compactMap { $0.hexDigitValue }
    self = stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }
}
