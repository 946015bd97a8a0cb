import Media

extension CodecSession {
  /// Opens the decoder of `codec` that the configuration asks for. Returns the reason for the choice too.
  ///
  /// - Throws: ``DecoderError/unavailable(_:)``.
  static func open(
    _ codec: VideoCodec, _ configuration: VideoDecoder.Configuration
  ) throws(DecoderError) -> (session: CodecSession, reason: String) {
    func session(_ node: String?) throws(CodecSession.Fault) -> CodecSession {
      try CodecSession(codec, renderNode: node, configuration)
    }
    var reason = "software was asked for"
    do throws(CodecSession.Fault) {
      switch configuration.acceleration {
      case .software: break
      case .renderNode(let node): return (try session(node), "\(node) was asked for")
      case .automatic:
        reason = "there is no render node in \(RenderNodes.directory)"
        for node in RenderNodes.all() {
          do throws(CodecSession.Fault) {
            return (try session(node), "the driver of \(node) opens")
          } catch {
            reason = "\(node) has no driver that opens: \(error.reason)"
          }
        }
      }
      return (try session(nil), reason)
    } catch {
      if case .renderNode(let node) = configuration.acceleration {
        throw .unavailable("\(node) has no VA-API driver that opens: \(error.reason)")
      }
      throw .unavailable("libavcodec does not open its \(codec.title) decoder: \(error.reason)")
    }
  }
}

extension VideoDecoder.Selection {
  /// Describes the choice of `session`.
  init(_ session: CodecSession, _ reason: String) {
    self.init(isHardware: session.isHardware, name: session.name, reason: reason)
  }
}
