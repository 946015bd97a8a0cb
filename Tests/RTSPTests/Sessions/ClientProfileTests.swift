import RTSP
import Testing

@Suite struct ClientProfileTests {
  @Test(
    arguments: [
      (nil, nil, false), ("GStreamer/1.26.2", nil, true), ("nightjar", nil, true), ("nightjar", "profile=avp", false),
      ("LibVLC/3.0.20 (LIVE555 Streaming Media v2016.11.28)", nil, false),
      ("Lavf61.7.100", nil, false), ("AndroidXMedia3/1.8.0", nil, false), ("my GStreamer/1.0", nil, false),
      ("GStreamer/1.26.2", "profile=avp", false), (nil, "profile=avpf", true), (nil, "Profile=AVPF", true),
      (nil, "user=anna&profile=avpf", true), (nil, "profile=avp&profile=avpf", true), (nil, "profile=high", false),
      ("GStreamer/1.26.2", "profile=high", true), (nil, "profile=avpfx", false), (nil, "xprofile=avpf", false),
      ("", "", false),
    ] as [(String?, String?, Bool)])
  func `AVPF is for who is known to read it, or asks for it`(agent: String?, query: String?, takesFeedback: Bool) {
    #expect(ClientProfile(userAgent: agent, query: query).takesFeedback == takesFeedback)
  }

  @Test(
    arguments: [
      (nil, true), ("Lavf61.7.100", true), ("GStreamer/1.26.2", true),
      ("LibVLC/3.0.20 (LIVE555 Streaming Media v2016.11.28)", false),
      ("openRTSP: (LIVE555 Streaming Media v2026.06.24)", false),
    ] as [(String?, Bool)])
  func `live555 gets no key, because it takes SRTP for something else`(agent: String?, takesKey: Bool) {
    #expect(ClientProfile(userAgent: agent, query: nil).takesKey == takesKey)
  }
}
