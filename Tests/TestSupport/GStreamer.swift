extension Subprocess.Result {
  /// Whether a pipeline of `gst-launch-1.0` (without `-q`) got all that it waits for, such as the pictures that
  /// `identity eos-after=` counts. A fault before that ends it without these words.
  ///
  /// Its status tells of its own end too. Within TLS, GStreamer 1.22 at times cancels the PAUSE that it is sending itself, and
  /// says that it could not write: "Received end-of-file".
  public var hasPlayed: Bool { outputText.contains("Got EOS from element") }
}
