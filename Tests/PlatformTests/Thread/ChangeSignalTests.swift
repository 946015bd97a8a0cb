import Platform
import Synchronization
import Testing

/// Tasks that wait for a change of another thread.
@Suite struct ChangeSignalTests {
  private final class Value: Sendable {
    let number = Atomic(0)
    let signal = ChangeSignal()

    var positive: Int? {
      let number = number.load(ordering: .relaxed)
      return number > 0 ? number : nil
    }
  }

  private static func later(_ seconds: Double) -> Instant { .now() + Duration(seconds: seconds) }

  @Test func `a value that exists is returned at once, and a wait for another ends at the deadline`() async {
    let value = Value()
    #expect(await value.signal.value(by: Self.later(0.05)) { value.positive } == nil)
    value.number.store(3, ordering: .relaxed)
    #expect(await value.signal.value(by: .zero) { value.positive } == 3)
  }

  @Test func `each of many changes wakes who waits for it`() async throws {
    let value = Value()
    for round in 1...200 {
      let task = Task {
        await value.signal.value(by: Self.later(60)) { value.positive.flatMap { $0 >= round ? $0 : nil } }
      }
      let thread = try NamedThread("nj-test") {
        value.number.store(round, ordering: .relaxed)
        value.signal.announce()
      }
      _ = consume thread
      #expect(await task.value == round)
    }
  }

  @Test func `a cancelled task gets nothing, whatever there is`() async {
    let value = Value()
    let waiting = Task { await value.signal.value(by: Self.later(60)) { value.positive } }
    waiting.cancel()
    #expect(await waiting.value == nil)
    value.number.store(1, ordering: .relaxed)
    let cancelled = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await value.signal.value(by: Self.later(60)) { value.positive }
    }
    #expect(await cancelled.value == nil)
  }
}
