import Foundation
import RTP
import RTSP
import Testing

/// The requests of players, and their reader.
enum Conversations {
  static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Captures")

  /// The recordings that lead to a picture. VLC's SAT>IP is not among them.
  static let players = [
    "ffmpeg-udp", "ffmpeg-tcp", "ffmpeg-multicast", "ffmpeg-avpf", "ffmpeg-user-query", "gstreamer-udp",
    "gstreamer-tcp", "gstreamer-multicast", "gstreamer-avpf", "gstreamer-user",
  ]

  static func recording(_ name: String) throws -> [UInt8] {
    Array(try Data(contentsOf: directory.appendingPathComponent("\(name).rtsp")))
  }
}

/// All that `parser` makes of `bytes`, given in these pieces.
func messages(
  _ pieces: some Sequence<ArraySlice<UInt8>>, with parser: inout RequestParser
) throws(RequestError) -> [ClientMessage] {
  var result: [ClientMessage] = []
  for piece in pieces {
    // A copy of its own size, so that a read beyond a piece is a read beyond memory.
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: piece.count, alignment: 1)
    defer { memory.deallocate() }
    memory.copyBytes(from: piece)
    var rest = UnsafeRawBufferPointer(memory)
    while let message = try parser.next(from: &rest) { result.append(message) }
    #expect(rest.isEmpty)
  }
  return result
}

func messages(_ bytes: [UInt8], limits: RequestParser.Limits = .init()) throws(RequestError) -> [ClientMessage] {
  var parser = RequestParser(limits: limits)
  return try messages([bytes[...]], with: &parser)
}

func requests(_ text: String) throws -> [Request] {
  try messages(Array(text.utf8)).compactMap { if case .request(let request) = $0 { request } else { nil } }
}

/// One request from lines with the line ends of Swift source.
func request(_ text: String) throws -> Request {
  let lines = text.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\r\n")
  return try #require(try requests(lines + "\r\n\r\n").first)
}
