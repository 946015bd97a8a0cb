import RTSP
import Testing

@Suite struct SessionStateTests {
  /// RFC 2326 appendix A.2, but for RECORD, and SETUP while playing, which section 10.4 allows to refuse.
  @Test(arguments: [
    (SessionState.initial, [RequestMethod.setup: SessionState.ready, .teardown: .initial]),
    (.ready, [.play: .playing, .setup: .ready, .teardown: .initial]),
    (.playing, [.play: .playing, .pause: .ready, .teardown: .initial]),
  ])
  func `the table of appendix A`(state: SessionState, table: [RequestMethod: SessionState]) {
    for method: RequestMethod in [.setup, .play, .pause, .teardown, .record, .announce, .redirect, .other("X")] {
      #expect(state.next(after: method) == table[method])
      #expect(state.methods.contains(method) == (table[method] != nil))
    }
    for method: RequestMethod in [.options, .describe, .getParameter, .setParameter] {
      #expect(state.next(after: method) == state)
    }
  }
}
