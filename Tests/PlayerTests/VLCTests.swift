import Foundation
import TestSupport
import Testing

/// The stream as Debian's VLC sees it, which has no way to play H.264 from an SDP.
@Suite(.serialized) struct VLCTests {
  @Test func `VLC shows the transport stream in its size, and plays its sound`() throws {
    let directory = try TemporaryDirectory()
    // VLC refuses to run as root, and wants a home that it may write.
    try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: directory.url.path)
    let port = try UDPPort.free()
    let sound = directory.path("sound.wav")
    let unprivileged =
      getuid() == 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
    let viewer = try Subprocess(
      unprivileged + [
        "env", "HOME=\(directory.url.path)", "XDG_RUNTIME_DIR=\(directory.url.path)", "cvlc", "-vv", "--aout=afile",
        "--audiofile-file=\(sound)", "--vout=vdummy", "--network-caching=150", "rtp://@127.0.0.1:\(port)",
      ], in: directory)
    defer { viewer.send(SIGKILL) }
    #expect(try eventually(within: 60) { try UDPPort.isBound(port) }, "\(viewer.errorSoFar.suffix(2000))")
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--source", "test", "--size", "640x360", "--keyframe-interval", "1s", "--audio", "test",
        // As little as a socket keeps while the viewer gets no processor for some seconds.
        "--bitrate", "250k", "--to", "rtp://127.0.0.1:\(port)?payload=mp2t",
      ], in: directory)
    defer { program.send(SIGTERM) }
    #expect(
      eventually(within: 60) { viewer.errorSoFar.contains("640x360") || viewer.errorSoFar.contains("640x368") },
      "\(viewer.errorSoFar.suffix(3000))")
    // What VLC plays it writes into the file: the beeps of two seconds at least.
    #expect(
      eventually(within: 60) { HeardSamples(file: sound, header: 44).beeps(channels: 1) >= 2 },
      "\(viewer.errorSoFar.suffix(3000))")
    let log = viewer.errorSoFar
    #expect(log.contains("h264") && log.contains("audio decoder module \"opus\""), "\(log.suffix(3000))")
    #expect(!log.contains("discontinuity received"), "\(log)")
  }
}
