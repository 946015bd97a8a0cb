import Serving
import Testing

@Suite struct SessionLimitTests {
  @Test(
    arguments: [
      // Bytes of memory, of them for this process, descriptors, sessions.
      (512 << 20, nil, 65_536, 128), (2 << 30, nil, 65_536, 512), (64 << 30, nil, 65_536, 1024),
      (64 << 30, nil, 1024, 192), (64 << 30, nil, 100, 16), (16 << 20, nil, 65_536, 16), (0, nil, 0, 16),
      (UInt64.max, nil, .max, 1024),
      (64 << 30, 512 << 20, 65_536, 256), (512 << 20, 512 << 20, 65_536, 128), (64 << 30, 0, 65_536, 16),
      (64 << 30, .max, 65_536, 1024),
    ] as [(UInt64, UInt64?, UInt64, Int)])
  func `as many as memory and descriptors have room for`(
    memory: UInt64, ownMemory: UInt64?, descriptors: UInt64, count: Int
  ) {
    let sessions = RTSPServerConfiguration.usualSessions(
      memory: memory, ownMemory: ownMemory, descriptors: descriptors)
    #expect(sessions == count)
  }

  @Test(arguments: [(1, 1, 2, 2), (16, 16, 32, 32), (128, 16, 256, 32), (1000, 125, 2000, 250)])
  func `an address has a share, and there is room for those that ask`(
    sessions: Int, ofAddress: Int, connections: Int, connectionsOfAddress: Int
  ) {
    var configuration = RTSPServerConfiguration(listeners: [])
    configuration.limit(sessions: sessions)
    #expect(configuration.sessions == sessions && configuration.sessionsPerAddress == ofAddress)
    #expect(configuration.connections == connections)
    #expect(configuration.connectionsPerAddress == connectionsOfAddress)
  }
}
