#if X265
  import Foundation
  import Media
  import TestSupport
  import Testing

  /// The program on VA-API hardware that encodes HEVC: the strict test driver's.
  @Suite(.serialized) struct HEVCHardwareTests {
    @Test func `x265 takes over where hardware fails, and the hardware is taken back`() throws {
      let driver = try HeldDriver()
      let recorder = try DatagramRecorder()
      let program = try driver.stream([
        "--codec", "hevc", "--to", "rtp://127.0.0.1:\(recorder.port)", "--keyframe-interval", "500ms", "--hang-limit",
        "100",
      ])
      #expect(eventually(within: 60) { recorder.count > 30 }, "\(program.errorSoFar)")
      let encoder = try #require(program.log.values(of: "encoder").first)
      #expect(encoder.hasPrefix("VA-API") && encoder.hasSuffix("(x265 stands by)"), "\(encoder)")
      try driver.order("fail=end\n")
      func lines(_ end: String) -> [String] {
        program.log.lines.filter { $0.hasPrefix("VA-API") && $0.hasSuffix(end) }
      }
      let takeover = " takes over, and nightjar tries the hardware again in 1 s"
      #expect(eventually(within: 60) { lines(takeover).count == 1 }, "\(program.errorSoFar)")
      let successor = lines(takeover).first?.components(separatedBy: "; ").last
      #expect(successor?.hasPrefix("x265") == true, "\(program.errorSoFar)")
      #expect(eventually(within: 60) { lines(" encodes again").count == 1 }, "\(program.errorSoFar)")
      let figures = try driver.end(program)
      #expect(figures["failovers"] == 1 && figures["recoveries"] == 1, "\(figures)")
      #expect(driver.violations.isEmpty, "\(driver.violations)")
      #expect(!(try StreamRecording(recorder.finish(), codec: .hevc).pictures.isEmpty))
    }
  }
#endif
