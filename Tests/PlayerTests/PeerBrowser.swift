import Foundation
import TestSupport
import Testing

/// Chromium as a peer without the page: it asks for the stream by WHEP, and takes the way that a test says.
final class PeerBrowser {
  private let browser: Browser

  /// The figures of its connection.
  struct Figures: Decodable {
    var framesDecoded = 0
    var keyFramesDecoded = 0
    var packetsReceived = 0
    var packetsLost = 0
    var nackCount = 0
    var pliCount = 0
    var freezeCount = 0
    var retransmittedPacketsReceived: Int?
    /// The protocol of the chosen pair: `udp` or `tcp`.
    var transport: String?
    /// The state of the connection.
    var state = ""
  }

  private static let script = """
    window.watch = async (options) => {
      const peer = window.peer = new RTCPeerConnection();
      for (const kind of ["video", "audio"]) peer.addTransceiver(kind, { direction: "recvonly" });
      const video = document.createElement("video");
      video.muted = video.autoplay = true;
      document.body.append(video);
      peer.ontrack = ({ track }) => { if (track.kind === "video") video.srcObject = new MediaStream([track]); };
      await peer.setLocalDescription(await peer.createOffer());
      const headers = { "Content-Type": "application/sdp" };
      const response = await fetch("/whep", { method: "POST", headers, body: peer.localDescription.sdp });
      let lines = (await response.text()).split("\\r\\n");
      if (options.port) {
        lines = lines.filter((line) => !line.startsWith("a=candidate"));
        const place = lines.indexOf("a=end-of-candidates");
        lines.splice(place, 0, `a=candidate:1 1 udp 2130706431 127.0.0.1 ${options.port} typ host`);
      }
      if (options.tcp) lines = lines.filter((line) => !/^a=candidate.* udp /.test(line));
      await peer.setRemoteDescription({ type: "answer", sdp: lines.join("\\r\\n") });
      return response.status;
    };
    window.figures = async () => {
      const reports = [...(await peer.getStats()).values()];
      const video = reports.find((one) => one.type === "inbound-rtp" && one.kind === "video") ?? {};
      const transport = reports.find((one) => one.type === "transport") ?? {};
      const pair = reports.find((one) => one.id === transport.selectedCandidatePairId);
      const place = reports.find((one) => one.id === pair?.remoteCandidateId);
      const names = ["framesDecoded", "keyFramesDecoded", "packetsReceived", "packetsLost", "nackCount", "pliCount",
        "freezeCount"];
      const figures = Object.fromEntries(names.map((name) => [name, video[name] ?? 0]));
      figures.retransmittedPacketsReceived = video.retransmittedPacketsReceived;
      return JSON.stringify({ ...figures, transport: place?.protocol, state: peer.connectionState });
    };
    """

  /// Begins to watch.
  ///
  /// - Parameters:
  ///   - port: of 127.0.0.1, instead of the answer's candidates.
  ///   - isConnecting: whether candidates of UDP are left out.
  init(_ program: WatchedProgram, port: UInt16? = nil, isConnecting: Bool = false) throws {
    browser = try Browser(in: program.directory)
    // A file of the same origin that does nothing by itself.
    try browser.open(program.url("/page/page.css"))
    try browser.run(Self.script)
    let options = "{ port: \(port.map { "\($0)" } ?? "null"), tcp: \(isConnecting) }"
    #expect(browser.number("window.watch(\(options))") == 201)
  }

  /// The present figures; zeros where the page does not answer.
  var figures: Figures {
    let text = browser.text("window.figures()") ?? ""
    return (try? JSONDecoder().decode(Figures.self, from: Data(text.utf8))) ?? Figures()
  }
}
