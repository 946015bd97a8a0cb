import Media
import Testing

@Suite struct InterruptTests {
  @Test func `it is told to who looks and to who waits, until it is forgotten`() throws {
    let interrupt = try Interrupt()
    #expect(!interrupt.hasFired() && interrupt.wait(until: .now()))
    interrupt.fire()
    #expect(interrupt.hasFired() && !interrupt.wait(until: .now() + MediaTime(seconds: 3600)))
    interrupt.fire()
    interrupt.clear()
    #expect(!interrupt.hasFired() && interrupt.wait(until: .now()))
    interrupt.fire()
    #expect(interrupt.hasFired() && !interrupt.wait(until: .now()))
  }
}
