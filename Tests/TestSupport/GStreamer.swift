/// What counts pictures where there is no display, at the end of a pipeline of `gst-launch-1.0`: after so many the pipeline ends.
///
/// It says so again with each further one. `identity eos-after=` says it once, to a `multiqueue` in `decodebin`: that hands it on with
/// its next buffer, unless another one has passed meanwhile and overwritten it. Then the pipeline plays on for ever.
package func countingSink(_ pictures: Int) -> String { "fakesink sync=false num-buffers=\(pictures)" }

extension Subprocess.Result {
  /// Whether a pipeline of `gst-launch-1.0` (without `-q`) got all that it waits for, such as the pictures that
  /// ``countingSink(_:)`` counts. A fault before that ends it without these words.
  ///
  /// Its status tells of its own end too. Within TLS, GStreamer 1.22 at times cancels the PAUSE that it is sending itself, and
  /// says that it could not write: "Received end-of-file".
  package var hasPlayed: Bool { outputText.contains("Got EOS from element") }
}
