#if X264
  import Serving
  import Foundation
  import Media
  import Platform
  import SRTP
  import TestSupport
  import Testing

  /// A camera that is served by rtsps, with a certificate of openssl's.
  final class SecureCamera {
    let camera: ServedCamera
    let directory: TemporaryDirectory

    init(
      source: (any VideoSource)? = nil, bitrate: Int = 500_000,
      _ configure: (inout RTSPServerConfiguration) -> Void = { _ in }
    ) throws {
      directory = try TemporaryDirectory()
      let (certificate, key) = (directory.path("c.pem"), directory.path("k.pem"))
      let made = try Subprocess.run(
        [
          "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
          "2", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate,
        ], in: directory)
      try #require(made.status == 0, "\(made.error)")
      chmod(key, 0o600)
      let identity = try TLSIdentity(certificateFile: certificate, keyFile: key)
      camera = try ServedCamera(source: source, bitrate: bitrate) {
        $0.identity = identity
        $0.listeners = [
          .init(address: "127.0.0.1", port: 0, isEncrypted: true), .init(address: "127.0.0.1", port: 0),
        ]
        configure(&$0)
      }
    }

    /// A client by TLS.
    func client() throws -> RTSPClient { try RTSPClient(overTLS: camera.server.listeners[0].port) }

    /// A client without.
    func plainClient() throws -> RTSPClient { try RTSPClient(port: camera.server.listeners[1].port) }
  }

  extension SecureReceiver {
    /// A viewer who was told by a message, of one of its streams.
    convenience init(_ message: MIKEYMessage, stream: Int = 0) throws {
      try self.init(
        message.key, ssrc: message.streams[stream].ssrc, rolloverCounter: message.streams[stream].rolloverCounter)
    }
  }

  extension RTSPClient.Reply {
    /// The key that DESCRIBE gives.
    func describedKey() throws -> MIKEYMessage {
      let prefix = "a=key-mgmt:mikey "
      let line = try #require(body.components(separatedBy: "\r\n").first { $0.hasPrefix(prefix) }, "\(body)")
      return try MIKEYMessage(text: line.dropFirst(prefix.count))
    }

    /// The key that SETUP answers.
    func setupKey() throws -> MIKEYMessage {
      let field = try #require(header("KeyMgmt"), "\(self)")
      let data = try #require(field.components(separatedBy: "data=\"").last?.prefix { $0 != "\"" })
      return try MIKEYMessage(text: data)
    }
  }
#endif
