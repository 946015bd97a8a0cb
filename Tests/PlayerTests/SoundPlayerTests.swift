#if X264
  import Foundation
  import TestSupport
  import Testing

  /// Both tracks of RTSP, decoded and played by players: each counts its pictures, and its sound has the beeps.
  @Suite(.serialized) struct SoundPlayerTests {
    private static let transports = ["tcp", "udp"]

    /// Runs a player for each transport, all at once, and ends them.
    ///
    /// - Parameters:
    ///   - start: starts a player of a transport, which uses the folder.
    ///   - played: returns the pictures and the beeps that a folder's player has played so far.
    private func expectBoth(
      _ start: (_ program: ServedProgram, _ transport: String, _ folder: String) throws -> Subprocess,
      _ played: (_ player: Subprocess, _ folder: String) -> (pictures: Int, beeps: Int)
    ) throws {
      let program = try ServedProgram(["--audio", "test"])
      let players = try Self.transports.map { transport in
        let folder = program.directory.path(transport)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        return (transport, folder, try start(program, transport, folder))
      }
      defer {
        for (_, _, player) in players {
          player.send(SIGKILL)
          _ = try? player.wait(limit: 30)
        }
      }
      for (transport, folder, player) in players {
        // Thirty pictures a second, and a beep.
        #expect(
          eventually(within: 60) {
            let (pictures, beeps) = played(player, folder)
            return pictures >= 60 && beeps >= 2
          }, "\(transport): \(played(player, folder)) \(player.errorSoFar.suffix(2000))")
      }
      let viewers = try #require(
        JSONSerialization.jsonObject(with: Data(program.control("viewers", "--json").utf8)) as? [String: Any])
      let present = try #require(viewers["viewers"] as? [[String: Any]])
      #expect(present.allSatisfy { $0["tracks"] as? [String] == ["picture", "sound"] }, "\(present)")
    }

    @Test func `ffplay plays picture and sound by TCP and UDP`() throws {
      try expectBoth { program, transport, folder in
        try Subprocess(
          ["ffplay", "-hide_banner", "-v", "info"] + FFmpegTransport.options(transport)
            + ["-vf", "showinfo", program.url()], in: program.directory,
          environment: [
            "SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "disk", "SDL_DISKAUDIOFILE": "\(folder)/sound",
          ])
      } _: { player, folder in
        // SDL's disk plays what its device would: two channels, as RFC 7587 says of every Opus.
        (
          player.errorSoFar.components(separatedBy: " pts_time:").count - 1,
          HeardSamples(file: "\(folder)/sound").beeps(channels: 2)
        )
      }
    }

    @Test func `mpv plays picture and sound by TCP and UDP`() throws {
      try expectBoth { program, transport, folder in
        try Subprocess(
          [
            "mpv", "--no-config", "--rtsp-transport=\(transport)", "--demuxer-lavf-o=min_port=33000,max_port=60000",
            "--ao=pcm", "--ao-pcm-file=\(folder)/sound", "--ao-pcm-waveheader=no", "--audio-format=s16",
            "--audio-channels=mono", "--vo=image", "--vo-image-format=jpg", "--vo-image-outdir=\(folder)/pictures",
            program.url(),
          ], in: program.directory)
      } _: { _, folder in
        (
          (try? FileManager.default.contentsOfDirectory(atPath: "\(folder)/pictures").count) ?? 0,
          HeardSamples(file: "\(folder)/sound").beeps(channels: 1)
        )
      }
    }

    @Test func `GStreamer plays picture and sound by TCP and UDP`() throws {
      func played(_ folder: String) -> (pictures: Int, beeps: Int) {
        (
          ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).count { $0.hasSuffix(".jpg") },
          HeardSamples(file: "\(folder)/sound").beeps(channels: 1)
        )
      }
      try expectBoth { program, transport, folder in
        let command = [
          "gst-launch-1.0", "rtspsrc", "location=\(program.url())", "protocols=\(transport)", "latency=100", "name=s",
          "s.", "!", "application/x-rtp,media=video", "!", "queue", "!", "rtph264depay", "!", "avdec_h264", "!",
          "jpegenc", "!", "multifilesink", "location=\(folder)/%d.jpg", "s.", "!", "application/x-rtp,media=audio",
          "!", "queue", "!", "rtpopusdepay", "!", "opusdec", "!", "audioconvert", "!",
          "audio/x-raw,format=S16LE,channels=1", "!", "filesink", "buffer-mode=unbuffered", "location=\(folder)/sound",
        ]
        return try .branches(command, in: program.directory) { _ in
          played(folder).pictures > 0 && played(folder).beeps > 0
        }
      } _: { _, folder in
        played(folder)
      }
    }

    @Test func `ffmpeg plays two channels of the tone, and a lower bitrate is less`() throws {
      func bytesPerSecond(_ bitrate: String) throws -> Double {
        let program = try ServedProgram(["--audio", "test", "--audio-channels", "2", "--audio-bitrate", bitrate])
        let file = program.directory.path("sound.ogg")
        let sides = ["left", "right"].map { program.directory.path($0) }
        let player = try Subprocess(
          ["ffmpeg", "-nostdin", "-v", "error", "-rtsp_transport", "tcp", "-allowed_media_types", "audio"]
            + ["-i", program.url(), "-filter_complex", "channelsplit[l][r]", "-map", "0:a", "-c", "copy"]
            + [file]
            + ["-flush_packets", "1", "-map", "[l]", "-f", "s16le", sides[0]]
            + ["-flush_packets", "1", "-map", "[r]", "-f", "s16le", sides[1]], in: program.directory)
        defer {
          player.send(SIGKILL)
          _ = try? player.wait(limit: 30)
        }
        // Where the machine pauses, a beep is missing, and the next one comes.
        func beeps() -> [Int] { sides.map { HeardSamples(file: $0).beeps(channels: 1) } }
        #expect(eventually(within: 60) { beeps().allSatisfy { $0 >= 4 } }, "\(beeps()) \(player.errorSoFar)")
        player.send(SIGINT)
        _ = try player.wait(limit: 60)
        let seconds = HeardSamples(file: sides[0]).seconds(channels: 1)
        // The beep is a tenth of each second, in both channels alike.
        let count = beeps()
        #expect(count[0] == count[1] && Double(count[0]) > seconds / 2 - 1, "\(count) in \(seconds) s")
        return Double(try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int ?? 0) / seconds
      }
      let (small, large) = (try bytesPerSecond("12k"), try bytesPerSecond("128k"))
      // Nine tenths are silence, which costs less than the bitrate allows, and Ogg adds a little to both.
      #expect(large > 2 * small, "\(small) \(large)")
    }
  }
#endif
