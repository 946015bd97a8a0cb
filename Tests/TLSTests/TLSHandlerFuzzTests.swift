import TestSupport
import Testing

/// The handler under records that are cut anywhere, in an order that seeds decide.
@Suite struct TLSHandlerFuzzTests {
  @Test(arguments: FuzzedConnection.Fate.allCases)
  func `every byte arrives once and in order, or the connection ends with an error`(
    fate: FuzzedConnection.Fate
  ) throws {
    let server = try SecureServer.context()
    for seed in 1...UInt64(runsLong ? 10_000 : 100) {
      let faults = try FuzzedConnection(server, fate, seed: seed).run()
      try #require(faults.isEmpty, "\(fate), seed \(seed): \(faults)")
    }
  }
}
