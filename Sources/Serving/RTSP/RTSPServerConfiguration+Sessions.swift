extension RTSPServerConfiguration {
  /// The permitted numbers of sessions. A camera's pipeline serves all of them.
  package static let sessionLimits = 1...8192
  /// The most sessions unless another number is configured.
  private static let usualLimit: UInt64 = 1024
  /// The bytes of the machine's memory for each session of ``usualSessions(memory:ownMemory:descriptors:)``: a slow viewer's
  /// sockets and packets use a quarter of them at most.
  private static let memoryPerSession: UInt64 = 4 << 20
  /// The bytes of the process's own memory for each session: a slow viewer uses half of them at most, and few other programs any.
  private static let ownMemoryPerSession: UInt64 = 2 << 20
  /// The descriptors of a session: its connection, two UDP sockets, and one spare.
  private static let descriptorsPerSession: UInt64 = 4
  /// The descriptors that cameras, encoders and other servers need.
  private static let reservedDescriptors: UInt64 = 256

  /// Returns the number of sessions for a machine with `memory` bytes and a process that may have `ownMemory` of them, or
  /// all if that is nil, and `descriptors` descriptors: 16 at least, and 1024 at most.
  package static func usualSessions(memory: UInt64, ownMemory: UInt64?, descriptors: UInt64) -> Int {
    let room = descriptors > reservedDescriptors ? (descriptors - reservedDescriptors) / descriptorsPerSession : 0
    let own = ownMemory.map { $0 / ownMemoryPerSession } ?? .max
    return max(16, Int(min(memory / memoryPerSession, own, room, usualLimit)))
  }

  /// Limits sessions to `count`, those of one address to an eighth of that but at least 16, and connections to twice as
  /// many. A viewer has one connection, and clients that do not watch need room too.
  package mutating func limit(sessions count: Int) {
    sessions = count
    sessionsPerAddress = max(min(16, count), count / 8)
    connections = 2 * sessions
    connectionsPerAddress = 2 * sessionsPerAddress
  }
}
