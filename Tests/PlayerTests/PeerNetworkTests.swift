#if X264
  import Foundation
  import TestSupport
  import Testing

  /// Browsers behind networks that lose packets, or let no UDP through.
  @Suite(.serialized) struct PeerNetworkTests {
    /// The program and a relay before its port.
    private func program(_ options: String...) throws -> (program: WatchedProgram, relay: LossyRelay) {
      let port = try UDPPort.free()
      let program = try WatchedProgram(["--webrtc-port", "\(port)"] + options)
      return (program, try LossyRelay(to: port))
    }

    /// The packets that the program says to have sent again.
    private func retransmitted(_ program: WatchedProgram) throws -> Int {
      let text = try program.control("status", "--json", "--camera", "camera")
      let status = try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
      let destinations = try #require(status["destinations"] as? [[String: Any]])
      return destinations.reduce(0) { $0 + ($1["packets_retransmitted"] as? Int ?? 0) }
    }

    @Test func `packets that were lost come again, and the browser decodes all pictures`() throws {
      let (program, relay) = try program("--size", "640x480", "--bitrate", "2M")
      let browser = try PeerBrowser(program, port: relay.port)
      try #require(eventually(within: 60) { browser.figures.framesDecoded > 10 }, "\(browser.figures)")
      relay.loss = 0.05
      let before = browser.figures
      let isRepaired = eventually(within: 60) { browser.figures.nackCount >= before.nackCount + 10 }
      #expect(isRepaired, "\(browser.figures)")
      relay.loss = 0
      let figures = browser.figures
      let goesOn = eventually(within: 30) { browser.figures.framesDecoded > figures.framesDecoded + 10 }
      #expect(goesOn, "\(browser.figures)")
      // A packet that was lost counts as lost even if it came again. Few were lost twice. What the relay has not lost,
      // a browser that got no processor had no room for; what the browser has not missed went the other way.
      let last = browser.figures
      let lost = min(last.packetsLost - before.packetsLost, relay.counts.lost)
      let repaired = last.retransmittedPacketsReceived ?? 0
      #expect(repaired > 0 && repaired * 3 >= lost * 2, "\(last), relay \(relay.counts)")
      #expect(try retransmitted(program) >= repaired)
    }

    @Test func `after a network that was dead, a new key frame comes by request, and pictures go on`() throws {
      // With a preset of its own the encoder is not exchanged for a faster one, which would begin with a key frame.
      let (program, relay) = try program("--keyframe-interval", "600s", "--x264-preset", "ultrafast")
      let browser = try PeerBrowser(program, port: relay.port)
      try #require(eventually(within: 60) { browser.figures.framesDecoded > 10 }, "\(browser.figures)")
      let before = browser.figures
      relay.loss = 1
      // Longer than packets are kept, and than Chromium waits for a picture before it sends a PLI: 3 s. After a shorter time, a key frame
      // that the program makes by itself may come first.
      usleep(4_500_000)
      // Pictures came between the first figures and the loss.
      let dead = browser.figures
      relay.loss = 0
      var figures = dead
      let isBack = eventually(within: 30) {
        figures = browser.figures
        return figures.framesDecoded > dead.framesDecoded + 10
          && figures.keyFramesDecoded > before.keyFramesDecoded
      }
      #expect(isBack && figures.pliCount > before.pliCount, "\(figures)")
      #expect(figures.keyFramesDecoded > before.keyFramesDecoded, "\(figures)")
    }

    /// `true` if a test may have a network of its own with IPv6.
    private static let hasNamespaces: Bool = {
      guard let directory = try? TemporaryDirectory() else { return false }
      let script = "ip link set lo up && ip addr add fd00:9:8::7/128 dev lo"
      return (try? Subprocess.run(["unshare", "-rn", "sh", "-c", script], in: directory))?.status == 0
    }()

    @Test(.enabled(if: hasNamespaces, "needs user namespaces and IPv6"))
    func `a host that has IPv6 alone is watched by IPv6`() throws {
      let directory = try TemporaryDirectory()
      let peer = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/Clients/peer.py"
      let script = """
        cd '\(directory.url.path)'
        ip link set lo up && ip addr add fd00:9:8::7/128 dev lo || exit 90
        echo 'correct horse' | '\(nightjarPath)' user add anna --users users > /dev/null || exit 91
        '\(nightjarPath)' stream --source test --audio test --size 320x240 --https '[fd00:9:8::7]:8443' \
          --users users --control none 2> log &
        stream=$!
        for i in $(seq 600); do grep -q '^https ' log && break; sleep 0.1; done
        /usr/bin/python3 '\(peer)' 'https://[fd00:9:8::7]:8443/whep' seconds=1 video=16 audio=26 'login=anna:correct horse'
        status=$?
        kill $stream
        wait $stream
        cat log >&2
        exit $status
        """
      let result = try Subprocess.run(
        ["unshare", "-rn", "sh", "-c", script], in: directory,
        environment: ["STATE_DIRECTORY": directory.path("state")], limit: 200)
      try #require(result.status == 0, "\(result.error)")
      let told = try #require(JSONSerialization.jsonObject(with: result.output) as? [String: Any])
      let frames = try #require(told["frames"] as? [String: Int], "\(told)")
      #expect(frames["video", default: 0] > 15 && frames["audio", default: 0] > 25, "\(told)")
      let answer = try #require(told["answer"] as? String)
      let candidates = answer.components(separatedBy: "\r\n").filter { $0.hasPrefix("a=candidate:") }
      // The address is the fifth field (RFC 8839 section 5.1).
      let addresses = Set(candidates.map { $0.split(separator: " ").dropFirst(4).first })
      #expect(addresses == ["fd00:9:8::7"], "\(candidates)")
      #expect(result.error.contains("fd00:9:8::7"), "\(result.error)")
    }

    @Test func `a handshake gets through a network that loses every fifth datagram`() throws {
      let (program, relay) = try program()
      relay.loss = 0.2
      let browser = try PeerBrowser(program, port: relay.port)
      #expect(eventually(within: 50) { browser.figures.state == "connected" }, "\(browser.figures)")
      #expect(relay.counts.lost > 0)
    }

    @Test func `where no UDP gets through, a browser watches by TCP`() throws {
      let program = try WatchedProgram(["--audio", "test", "--size", "640x480", "--bitrate", "2M"])
      let browser = try PeerBrowser(program, isConnecting: true)
      var (figures, isWhole) = (PeerBrowser.Figures(), false)
      // A browser that gets no processor for a while takes no bytes, and so loses whole frames, which are counted. What comes after them
      // is looked at instead.
      for _ in 0..<3 where !isWhole {
        let before = figures
        let hasMore = eventually(within: 60) { browser.figures.framesDecoded > before.framesDecoded + 60 }
        #expect(hasMore, "\(browser.figures)")
        figures = browser.figures
        let dropped = try program.viewers().first?["frames_dropped"] as? Int ?? 0
        isWhole = (figures.packetsLost, figures.nackCount) == (before.packetsLost, before.nackCount)
        guard dropped > 0 else { break }
      }
      #expect(figures.transport == "tcp" && isWhole, "\(figures)")
      // A connection that is closed from outside is made again by the browser, or its session ends: never another's.
      #expect(try program.viewerKinds() == ["webrtc"])
    }

    @Test func `a peer that is no browser watches by TCP, until it ends its session`() throws {
      let program = try WatchedProgram(["--audio", "test"])
      let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/Clients/peer.py"
      var (told, dropped, sessions): ([String: Any], Double, Int) = ([:], 0, 0)
      // A peer that gets no processor for a while takes no bytes, and so loses whole frames, which are counted: it watches again.
      for _ in 0..<3 where told["lost"] as? Int != 0 {
        let result = try Subprocess.run(
          ["/usr/bin/python3", script, program.url("/whep"), "seconds=1", "video=16", "audio=26", "tcp=1"],
          in: program.directory, limit: 200)
        #expect(result.status == 0, "\(result.error.suffix(3000))")
        told = try #require(JSONSerialization.jsonObject(with: result.output) as? [String: Any])
        sessions += 1
        let before = dropped
        let totals = try Scrape(program.directory.path("control"), in: program.directory)
        dropped = totals["nightjar_viewer_frames_dropped_total"] ?? 0
        guard dropped > before else { break }
      }
      let frames = try #require(told["frames"] as? [String: Int])
      #expect(frames["video", default: 0] > 15 && frames["audio", default: 0] > 25, "\(told)")
      #expect(told["lost"] as? Int == 0 && told["deleted"] as? [Int] == [200, 404], "\(told)")
      let ends = Array(repeating: "ended", count: sessions)
      let isTold = eventually { program.process.log.ends(ofViewers: "webrtc") == ends }
      #expect(isTold, "\(program.process.errorSoFar)")
    }
  }
#endif
