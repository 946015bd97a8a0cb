#if X264
  import Foundation
  import TestSupport
  import Testing

  /// RTP packets that follow one another in one stream, none missing.
  private func expectWhole(_ packets: [Data], atLeast count: Int, _ log: String) {
    #expect(packets.count >= count, "\(log)")
    let headers = packets.map { [UInt8]($0.prefix(12)) }
    #expect(Set(headers.map { $0[8..<12].map { $0 } }).count == 1, "\(log)")
    let numbers = headers.map { UInt16($0[2]) << 8 | UInt16($0[3]) }
    let gaps = zip(numbers, numbers.dropFirst()).filter { $1 != $0 &+ 1 }
    #expect(gaps.isEmpty, "\(gaps) \(log)")
  }

  /// Reading the configuration again while it streams.
  @Suite struct ReloadTests {
    /// A file that differs from one number to the next in bitrate, orientation and destinations.
    private static func text(_ number: Int, _ source: String, _ first: UInt16, _ second: UInt16) -> String {
      let more = number.isMultiple(of: 2) ? "" : ", 'rtp://127.0.0.1:\(second)'"
      return """
        \(source)
        bitrate = "\(500 + number)k"
        orientation = \([0, 90, 180, 270][number % 4])
        to = ['rtp://127.0.0.1:\(first)'\(more)]
        """
    }

    @Test func `a storm of reloads changes bitrate, destinations and orientation, and loses no frame`() throws {
      let reloads = runsLong ? 100 : 24
      let (first, second) = (try DatagramRecorder(), try DatagramRecorder())
      func text(_ number: Int) -> String {
        Self.text(number, "source = 'test'\nsize = '320x240'", first.port, second.port)
      }
      let program = try ConfiguredProgram(text(0))
      for number in 1...reloads {
        try program.write(text(number))
        #expect(try program.reload() == ["camera": "changed"], "\(program.process.errorSoFar)")
      }
      let status = try program.answer("status")
      #expect(status["reloads"] as? Int == reloads)
      let camera = try #require((status["cameras"] as? [[String: Any]])?.first)
      #expect((camera["encoder"] as? [String: Any])?["bitrate"] as? Int == 500_000 + reloads * 1000)
      #expect((camera["orientation"] as? [String: Any])?["degrees"] as? Int == 0)
      #expect((camera["destinations"] as? [Any])?.count == 1)
      let (frames, log) = (camera["frames"] as? [String: Any] ?? [:], program.process.errorSoFar)
      try program.end()
      expectWhole(first.finish(), atLeast: 30, "\(frames) \(log)")
      #expect(!second.finish().isEmpty)
      // What a busy machine's camera or encoder comes too late for is none that a reload has lost.
      let causes = (frames["dropped_by_cause"] as? [String: Int] ?? [:]).filter { $0.value > 0 }
      #expect(Set(causes.keys).isSubset(of: ["driver", "encoder_late", "network"]), "\(causes)")
    }

    @Test func `of a clip that waits for the encoder not one frame is lost in many reloads`() throws {
      let directory = try TemporaryDirectory()
      let clip = directory.path("clip.y4m")
      let made = try Subprocess.run(
        [
          "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=30:duration=2", "-pix_fmt",
          "yuv420p",
          clip,
        ], in: directory)
      #expect(made.status == 0, "\(made.error)")
      let ports = (try UDPPort.free(), try UDPPort.free())
      func text(_ number: Int) -> String {
        Self.text(number, "source = 'file:\(clip)'\nrate = 'max'", ports.0, ports.1)
      }
      let program = try ConfiguredProgram(text(0))
      for number in 1...(runsLong ? 40 : 12) {
        try program.write(text(number))
        #expect(try program.reload() == ["camera": "changed"], "\(program.process.errorSoFar)")
      }
      var (camera, frames): ([String: Any], [String: Any]) = ([:], [:])
      var (captured, encoded) = (0, 0)
      // The figures are read one after the other: what comes in between counts as encoded and not as captured.
      _ = try eventually {
        camera = try #require((try program.answer("status")["cameras"] as? [[String: Any]])?.first)
        frames = camera["frames"] as? [String: Any] ?? [:]
        (captured, encoded) = (frames["captured"] as? Int ?? 0, frames["encoded"] as? Int ?? 0)
        return encoded > 30 && captured >= encoded
      }
      // Captured and not encoded yet: one that waits for the mailbox to be empty, the one in it, one at the encoder.
      #expect(encoded > 30 && (0...3).contains(captured - encoded), "\(frames)")
      #expect((camera["orientation"] as? [String: Any])?["switches"] as? Int ?? 0 >= 3, "\(camera)")
      // Nobody listens at the ports, which is no matter here.
      let causes = (frames["dropped_by_cause"] as? [String: Int] ?? [:]).filter { $0.value > 0 && $0.key != "network" }
      #expect(causes.isEmpty, "\(causes)")
      try program.end()
    }

    @Test func `an option that needs a new pipeline is reported, and the picture returns`() throws {
      let recorder = try DatagramRecorder()
      let text = "source = 'test'\nto = 'rtp://127.0.0.1:\(recorder.port)'\nsize = "
      let program = try ConfiguredProgram(text + "'320x240'")
      try program.write(text + "'640x480'")
      #expect(try program.reload() == ["camera": "restarted"])
      let count = recorder.count
      #expect(eventually { recorder.count > count + 30 }, "\(program.process.errorSoFar)")
      let camera = try #require((try program.answer("status")["cameras"] as? [[String: Any]])?.first)
      #expect((camera["source"] as? [String: Any])?["width"] as? Int == 640)
      #expect(program.process.log.count(of: "restarts, for size") == 1, "\(program.process.errorSoFar)")
      // It was opened at once, or that would be tried again.
      let failures = program.process.log.lines.filter { $0.hasSuffix("; nightjar tries again") }
      #expect(failures.isEmpty && program.process.log.failures.isEmpty, "\(program.process.errorSoFar)")
      try program.end()
      _ = recorder.finish()
    }

    @Test func `a file that is wrong changes nothing and says why`() throws {
      let recorder = try DatagramRecorder()
      let text = "source = 'test'\nsize = '320x240'\nto = 'rtp://127.0.0.1:\(recorder.port)'\n"
      let program = try ConfiguredProgram(text)
      for (broken, words) in [
        ("bitrat = '1M'\n", ["nightjar.toml:4", "bitrat", "bitrate"]), ("fps = 'fast'\n", ["nightjar.toml:4", "fps"]),
        ("fps = [\n", ["nightjar.toml:"]),
      ] {
        try program.write(text + broken)
        let result = try program.control("reload")
        #expect(result.status != 0 && result.error.split(separator: "\n").count == 1, "\(result.error)")
        for word in words { #expect(result.error.contains(word), "\(result.error)") }
      }
      #expect(unlink(program.directory.path("nightjar.toml")) == 0)
      #expect(try program.control("reload").status == 66)
      #expect(try program.answer("status")["reloads"] as? Int == 0)
      // By the signal as well.
      try program.write(text + "bitrate = '700k'\n")
      program.process.send(SIGHUP)
      #expect(eventually { program.process.log.count(of: "reloaded: camera changed") == 1 })
      #expect(eventually { recorder.count >= 10 })
      try program.end()
      expectWhole(recorder.finish(), atLeast: 10, program.process.errorSoFar)
    }

    @Test func `an option on the command line overrides the file, with one warning`() throws {
      let text = "source = 'test'\nsize = '320x240'\n"
      let program = try ConfiguredProgram(text, arguments: ["--bitrate", "700k"])
      try program.write(text + "bitrate = '900k'\n")
      func warnings() throws -> [String] { try program.answer("reload")["warnings"] as? [String] ?? [] }
      let file = program.directory.path("nightjar.toml")
      #expect(try warnings() == ["\(file):3: bitrate: the command line overrides it"])
      #expect(try warnings() == [])
      let camera = try #require((try program.answer("status")["cameras"] as? [[String: Any]])?.first)
      #expect((camera["encoder"] as? [String: Any])?["bitrate"] as? Int == 700_000)
      try program.end()
    }

    @Test func `cameras come and go, and the one that stays loses nothing`() throws {
      let (first, second) = (try DatagramRecorder(), try DatagramRecorder())
      func camera(_ name: String, _ port: UInt16, _ more: String = "") -> String {
        "[[camera]]\nname = '\(name)'\nsource = 'test'\nto = 'rtp://127.0.0.1:\(port)'\n\(more)\n"
      }
      let head = "size = '320x240'\n"
      let program = try ConfiguredProgram(head + camera("nursery", first.port))
      try program.write(head + camera("nursery", first.port) + camera("birds", second.port, "fps = 15"))
      #expect(try program.reload() == ["nursery": "unchanged", "birds": "added"])
      #expect(eventually { second.count > 20 }, "\(program.process.errorSoFar)")
      #expect((try program.answer("status")["cameras"] as? [Any])?.count == 2)
      // Each is asked by its name.
      #expect(try program.control("rotate", "90", "--camera", "birds").status == 0)
      #expect(try program.control("rotate", "90").status == 64)
      try program.write(head + camera("nursery", first.port) + camera("birds", second.port, "fps = 10"))
      #expect(try program.reload() == ["nursery": "unchanged", "birds": "restarted"])
      try program.write(head + camera("nursery", first.port))
      #expect(try program.reload() == ["nursery": "unchanged", "birds": "removed"])
      let log = program.process.errorSoFar
      #expect(ProgramLog(log).count(of: "birds: restarts, for fps, orientation") == 1, "\(log)")
      #expect(eventually { first.count >= 60 })
      try program.end()
      expectWhole(first.finish(), atLeast: 60, log)
      #expect(second.finish().count > 20)
    }

    @Test func `a camera that cannot be opened disturbs no other, and is tried again`() throws {
      let recorder = try DatagramRecorder()
      let directory = try TemporaryDirectory()
      let clip = directory.path("late.y4m")
      let program = try ConfiguredProgram(
        """
        [[camera]]
        name = "one"
        source = "test"
        to = "rtp://127.0.0.1:\(recorder.port)"
        [[camera]]
        name = "two"
        source = "file:\(clip)"
        to = "rtp://127.0.0.1:\(try UDPPort.free())"
        """)
      let isTold = eventually { program.process.log.lines.contains { $0.hasPrefix("two: ") } }
      #expect(isTold, "\(program.process.errorSoFar)")
      let absent = try program.answer("status")["absent"] as? [[String: String]] ?? []
      #expect(absent.map { $0["name"] } == ["two"] && absent.first?["reason"]?.contains(clip) == true, "\(absent)")
      // It is asked for by no mistake that the other one would be meant.
      #expect(try program.control("bitrate", "1M").status == 64)
      #expect(try program.control("bitrate", "1M", "--camera", "two").status == 69)
      let made = try Subprocess.run(
        [
          "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=30:duration=2", "-pix_fmt",
          "yuv420p", clip + ".new.y4m",
        ], in: directory)
      #expect(made.status == 0, "\(made.error)")
      try FileManager.default.moveItem(atPath: clip + ".new.y4m", toPath: clip)
      #expect(
        eventually(within: 120) { program.process.log.count(of: "two: streaming") == 1 },
        "\(program.process.errorSoFar)")
      try program.end()
      expectWhole(recorder.finish(), atLeast: 30, program.process.errorSoFar)
    }

    @Test func `a camera that hangs while it is opened is removed, and comes back, without harm to the other`() throws {
      let recorder = try DatagramRecorder()
      let port = try UDPPort.free()
      let directory = try TemporaryDirectory()
      // Opening a pipe that nobody writes to takes for ever.
      let pipe = directory.path("pipe")
      #expect(mkfifo(pipe, 0o600) == 0)
      let one = "[[camera]]\nname = 'one'\nsource = 'test'\nto = 'rtp://127.0.0.1:\(recorder.port)'\n"
      let two = "[[camera]]\nname = 'two'\nsource = 'file:\(pipe)'\nto = 'rtp://127.0.0.1:\(port)'\n"
      let three = "[[camera]]\nname = 'three'\nsource = 'file:\(pipe)-'\nto = 'rtp://127.0.0.1:\(port + 2)'\n"
      let program = try ConfiguredProgram(one + two)
      try program.write(one + three)
      #expect(try program.reload()["two"] == "removed")
      try program.write(one + two)
      #expect(try program.reload() == ["one": "unchanged", "two": "added", "three": "removed"])
      #expect(try program.reload()["one"] == "unchanged")
      let names = (try program.answer("status")["cameras"] as? [[String: Any]])?.compactMap { $0["name"] as? String }
      #expect(names == ["one"])
      #expect(eventually { recorder.count >= 100 })
      program.process.send(SIGTERM)
      #expect(try program.process.wait(limit: 60).status == 0)
      expectWhole(recorder.finish(), atLeast: 100, program.process.errorSoFar)
    }

    @Test func `a destination of the file goes with it, and another comes`() throws {
      let recorders = try (0..<3).map { _ in try DatagramRecorder() }
      func text(_ index: Int, _ more: String = "") -> String {
        "source = 'test'\nsize = '320x240'\nto = 'rtp://127.0.0.1:\(recorders[index].port)'\n\(more)"
      }
      let program = try ConfiguredProgram(text(0))
      func urls() throws -> [String] {
        let camera = try #require((try program.answer("status")["cameras"] as? [[String: Any]])?.first)
        return (camera["destinations"] as? [[String: Any]])?.compactMap { $0["url"] as? String } ?? []
      }
      // Something else first: the destination is to be left alone by that.
      try program.write(text(0, "bitrate = '700k'\n"))
      let answer = try program.answer("reload")
      #expect(answer["warnings"] as? [String] == [] && "\(answer)".contains("bitrate"), "\(answer)")
      #expect(try program.reload() == ["camera": "unchanged"])
      for index in [1, 2] {
        try program.write(text(index, "bitrate = '700k'\n"))
        #expect(try program.reload() == ["camera": "changed"])
        #expect(try urls() == ["rtp://127.0.0.1:\(recorders[index].port)"])
      }
      // Where nobody says, it is this machine.
      try program.write("source = 'test'\nsize = '320x240'\n")
      #expect(try program.reload() == ["camera": "changed"])
      #expect(try urls() == ["rtp://127.0.0.1:5004", "rtp://127.0.0.1:5006?payload=mp2t"])
      try program.write(text(0))
      #expect(try program.reload() == ["camera": "changed"])
      #expect(try urls() == ["rtp://127.0.0.1:\(recorders[0].port)"])
      try program.end()
    }

    @Test func `a reload undoes changes by nightjar ctl, and keeps destinations that nightjar ctl added`() throws {
      let (first, second) = (try DatagramRecorder(), try DatagramRecorder())
      let to = "rtp://127.0.0.1:\(first.port)"
      let program = try ConfiguredProgram("source = 'test'\nsize = '320x240'\nbitrate = '600k'\nto = '\(to)'\n")
      #expect(try program.control("bitrate", "900k").status == 0)
      #expect(try program.control("rotate", "180").status == 0)
      #expect(try program.control("remove", to).status == 0)
      #expect(try program.control("add", "rtp://127.0.0.1:\(second.port)").status == 0)
      #expect(try program.reload() == ["camera": "changed"])
      let camera = try #require((try program.answer("status")["cameras"] as? [[String: Any]])?.first)
      #expect((camera["encoder"] as? [String: Any])?["bitrate"] as? Int == 600_000)
      #expect((camera["orientation"] as? [String: Any])?["degrees"] as? Int == 0)
      let urls = (camera["destinations"] as? [[String: Any]])?.compactMap { $0["url"] as? String } ?? []
      #expect(Set(urls) == [to, "rtp://127.0.0.1:\(second.port)"])
      #expect(try program.reload() == ["camera": "unchanged"])
      try program.end()
    }
  }
#endif
