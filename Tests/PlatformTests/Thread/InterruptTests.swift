import Platform
import Testing

@Suite struct InterruptTests {
  @Test func `an interrupt is seen by polling and by waiting, until it is cleared`() throws {
    let interrupt = try Interrupt()
    #expect(!interrupt.hasFired() && interrupt.wait(until: .now()))
    interrupt.fire()
    #expect(interrupt.hasFired() && !interrupt.wait(until: .now() + Duration(seconds: 3600)))
    interrupt.fire()
    interrupt.clear()
    #expect(!interrupt.hasFired() && interrupt.wait(until: .now()))
    interrupt.fire()
    #expect(interrupt.hasFired() && !interrupt.wait(until: .now()))
  }
}
