import Streaming

extension ServerConfiguration {
  /// How many sessions a server may be told to have.
  public static let sessionLimits = 1...8192
  /// Bytes of memory for each session of ``usualSessions(memory:descriptors:)``: a quarter of it is what a slow viewer's
  /// sockets and packets take at most.
  private static let memoryPerSession: UInt64 = 4 << 20
  /// Descriptors of a session: its connection, two UDP sockets, and one to spare.
  private static let descriptorsPerSession: UInt64 = 4
  /// Descriptors that cameras, encoders and other servers need.
  private static let reservedDescriptors: UInt64 = 256

  /// How many sessions suit a machine of so much memory, in bytes, and a process that may have so many descriptors: 16 at
  /// least, and no more than a camera has viewers.
  public static func usualSessions(memory: UInt64, descriptors: UInt64) -> Int {
    let room = descriptors > reservedDescriptors ? (descriptors - reservedDescriptors) / descriptorsPerSession : 0
    return max(16, Int(min(memory / memoryPerSession, room, UInt64(Pipeline.viewerLimit))))
  }

  /// Limits sessions to `count`, those of one address to an eighth of that, though to 16 at least, and connections to twice
  /// as many: a viewer has one, and whoever asks without watching needs room too.
  public mutating func limit(sessions count: Int) {
    sessions = count
    sessionsPerAddress = max(min(16, count), count / 8)
    connections = 2 * sessions
    connectionsPerAddress = 2 * sessionsPerAddress
  }
}
