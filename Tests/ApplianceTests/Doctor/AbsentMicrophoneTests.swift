import Appliance
import Capture
import Serving
import Sound
import Testing

/// The doctor's findings on a microphone that the running stream does not have.
@Suite struct AbsentMicrophoneTests {
  /// Returns the state of a sound without a microphone.
  private func silence(_ name: String = "", losses: Int = 0) -> StreamStatus.Sound {
    StreamStatus.Sound(
      present: false, name: name, rmsDbfs: -100, peakDbfs: -100, muted: false, gainDb: 0, clipped: 0,
      silenceSeconds: 9, driftPpm: 0, overruns: 0, losses: losses, encoded: 450)
  }

  private func camera(_ state: String, seconds: Double = 60) -> StreamStatus.Camera {
    StreamStatus.Camera(
      state: state, device: state == "live" ? "/dev/video0" : nil, since: "2024-05-01T10:00:00Z", seconds: seconds,
      losses: 0, reopenings: 0, placeholderFrames: 0, obstacle: nil)
  }

  private func finding(
    _ sound: StreamStatus.Sound, choice: CameraSound.Choice = .auto, camera: StreamStatus.Camera? = nil,
    device: String? = nil, holders: [DeviceHolder] = [], origin: StreamOrigin = .user
  ) -> Finding? {
    AbsentMicrophone(
      choice: choice, sound: sound, camera: camera, device: device, holders: holders, stream: 4_000_001,
      origin: origin
    ).finding
  }

  @Test func `a camera that came later and has no microphone has not lost one`() {
    let none = finding(silence(), camera: camera("live"))
    #expect(none?.kind == .microphone && none?.text.hasPrefix("no microphone") == true, "\(String(describing: none))")
    #expect(none?.mends == [])
    let lost = finding(silence("C920 (hw:CARD=C920,DEV=0)", losses: 1), camera: camera("live"))
    #expect(lost?.kind == .microphoneLost)
    #expect(lost?.text == "C920 (hw:CARD=C920,DEV=0): lost by the running stream; viewers hear silence")
    #expect(lost?.mends.contains(.command("nightjar devices")) == true)
  }

  @Test(arguments: ["waiting", "disconnected", "stalled", "failed", "frozen"])
  func `nothing is told of a microphone before its camera is there`(state: String) {
    #expect(finding(silence(), camera: camera(state)) == nil)
    #expect(finding(silence(), camera: camera(state), device: "hw:CARD=C920,DEV=0") == nil)
  }

  @Test func `a camera that has just come may still find its microphone`() {
    #expect(finding(silence(), camera: camera("live", seconds: 1), device: "hw:CARD=C920,DEV=0") == nil)
    #expect(finding(silence(), camera: camera("live"), device: "hw:CARD=C920,DEV=0")?.kind == .microphoneLost)
  }

  @Test func `a microphone that another program has is busy, and one by its name is missing`() throws {
    let other = DeviceHolder(processID: 4_000_002, name: "arecord")
    let busy = finding(silence(), camera: camera("live"), device: "hw:CARD=C920,DEV=0", holders: [other])
    #expect(busy?.kind == .microphoneBusy && busy?.mends.first == .command("kill 4000002"))
    let missing = finding(silence(), choice: .device(try SoundDeviceName("hw:CARD=Nowhere")))
    #expect(missing?.kind == .microphoneMissing && missing?.text.contains("hw:CARD=Nowhere") == true)
  }

  @Test func `a microphone that is plugged in but not opened is not to be plugged in again`() {
    func closed(_ origin: StreamOrigin) -> Finding? {
      finding(silence("C920 (hw:CARD=C920,DEV=0)", losses: 1), device: "hw:CARD=C920,DEV=0", origin: origin)
    }
    let text = "hw:CARD=C920,DEV=0 is there, but the running stream cannot open it; viewers hear silence"
    #expect(closed(.user)?.kind == .microphoneLost && closed(.user)?.text == text)
    #expect(closed(.user)?.mends == [.advice("the stream's log says why")])
    #expect(
      closed(.service)?.mends == [.asRoot("journalctl -u nightjar NIGHTJAR_EVENT=sound -n 20 --no-pager")])
  }

  @Test func `another microphone that is plugged in is not the one that was lost`() {
    let other = finding(
      silence("C920 (hw:CARD=C920,DEV=0)", losses: 1), camera: camera("live"), device: "hw:CARD=PCH,DEV=0",
      holders: [DeviceHolder(processID: 4_000_002, name: "arecord")])
    #expect(other?.kind == .microphoneLost && other?.text.hasPrefix("C920 (hw:CARD=C920,DEV=0): lost") == true)
    #expect(other?.mends.first == .advice("plug it in again"))
  }

  @Test func `a microphone that came after the start of a stream without sound is named`() {
    let none = MicrophoneFindings.soundless(nil, .service)
    #expect(none.kind == .microphone && none.text == "no microphone: the running stream has no sound")
    let new = MicrophoneFindings.soundless("C920 (hw:CARD=C920,DEV=0)", .service)
    #expect(new.kind == .microphoneUnused && new.text.hasPrefix("C920 (hw:CARD=C920,DEV=0) is there"), "\(new)")
    #expect(new.mends == [.asRoot("systemctl restart nightjar")])
    #expect(MicrophoneFindings.soundless("C920", .user).mends == [.advice("start the stream again")])
  }

  @Test func `the process of the service is what systemctl says`() {
    #expect(ServiceState(parsing: "LoadState=loaded\nMainPID=812\n").process == 812)
    #expect(ServiceState(parsing: "LoadState=loaded\nMainPID=0\n").process == nil)
    #expect(ServiceState(parsing: "LoadState=loaded\n").process == nil)
  }
}
