import Glibc

/// A counter of pictures where there is no display, at the end of a pipeline of `gst-launch-1.0`: after so many the
/// pipeline ends.
///
/// It says so again with each further one. `identity eos-after=` says it once, to a `multiqueue` in `decodebin`: that
/// hands it on with its next buffer, unless another one has passed meanwhile and overwritten it. Then the pipeline
/// plays on for ever.
package func countingSink(_ pictures: Int) -> String { "fakesink sync=false num-buffers=\(pictures)" }

extension Subprocess.Result {
  /// The number of a pipeline's counters (``countingSink(_:)``) that have got all that they count, by GStreamer's own log.
  package var finishedCounters: Int {
    let lines = error.split(separator: "\n").filter { $0.hasSuffix("> we are EOS") }
    return Set(lines.compactMap { $0.split(separator: "<").last }).count
  }

  /// `true` if a pipeline of `gst-launch-1.0` (without `-q`) has ended because a counter got all that it counts. A fault
  /// before that ends it without these words, and the end of the stream, as by BYE, leaves the counter unfinished.
  ///
  /// Its status tells of its own end too. Within TLS, GStreamer 1.22 at times cancels the PAUSE that it is sending
  /// itself, and says that it could not write: "Received end-of-file".
  package var hasPlayed: Bool { outputText.contains("Got EOS from element") && finishedCounters > 0 }
}

extension Subprocess {
  /// Starts a pipeline of `gst-launch-1.0` that has a branch for each of several pads, and waits until it `plays`, or
  /// has ended.
  ///
  /// Where two threads at once link the first pad to its branch and the second to its own, gst-launch says that it
  /// failed, stays, and plays one of them or none. That one is interrupted, so that it ends its session, and another one
  /// started.
  package static func branches(
    _ command: [String], in directory: TemporaryDirectory, plays: (Subprocess) -> Bool
  ) throws -> Subprocess {
    var player = try Subprocess(command, in: directory)
    func isStuck() -> Bool { (player.outputSoFar + player.errorSoFar).contains("Delayed linking failed") }
    for attempt in 1...5 {
      _ = eventually(within: 60) { plays(player) || isStuck() || !player.isRunning }
      guard attempt < 5, isStuck(), !plays(player) else { break }
      player.send(SIGINT)
      _ = try player.wait(limit: 30)
      player = try Subprocess(command, in: directory)
    }
    return player
  }
}
