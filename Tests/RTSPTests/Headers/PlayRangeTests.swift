import RTSP
import Testing

@Suite struct PlayRangeTests {
  @Test(arguments: [
    "npt=now-", "npt=0-", "npt=0.000-", "NPT = 0.-", "npt=12.5-", "npt=123:45:59.3-", "npt=0:00:00-", "npt=0-5",
    "npt=0.000-5.000", "npt = 0.5 - 0.75", "npt=now-10", "npt=0:00:59-0:01:00", "npt=3-3",
  ])
  func `a range of seconds plays from now, with an end or without`(text: String) throws {
    _ = try PlayRange(text)
  }

  @Test(arguments: [
    "npt", "npt=", "npt=-", "npt=now", "npt=-10", "npt=10-5", "npt=0.75-0.5", "npt=0-1-2", "npt=0-x", "npt=a-",
    "npt=-1-", "npt=1:60:00-",
    "npt=1:00:60-", "npt=1:2-", "npt=1.2.3-", "npt=1.x-", "npt=9999999999-", "npt=now-;time=19970123T143720Z",
    "clock=19961108T143720.25Z-", "smpte=0:10:20-", "smpte-25=0:10:20-", "smpte-30-drop=10:07:00-10:07:33:05.01",
  ])
  func `a range that a camera cannot play is an invalid range`(text: String) {
    #expect(throws: PlayRangeError.range(text)) { try PlayRange(text) }
    #expect(PlayRangeError.range(text).status == .invalidRange)
  }

  @Test(arguments: ["", "bytes=0-", "=", "utc=1-", "now-"])
  func `an unknown unit is not implemented`(text: String) {
    #expect(throws: PlayRangeError.unit(text)) { try PlayRange(text) }
    #expect(PlayRangeError.unit(text).status == .notImplemented)
  }
}
