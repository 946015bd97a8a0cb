import Platform
import Testing

@Suite struct CBufferTests {
  @Test func `a buffer ends at its first zero byte, or where it ends`() {
    #expect(String(cBuffer: [0x61, 0x62, 0, 0x63]) == "ab")
    #expect(String(cBuffer: [0x61, 0x62]) == "ab")
    #expect(String(cBuffer: []).isEmpty && String(cBuffer: [0, 0x61]).isEmpty)
    #expect(String(cBuffer: [-61, -68, -1, 0]) == "ü\u{FFFD}")
  }
}
