/// The bitrate floor with which a viewer that gets no processor, and so reports late, keeps pictures of the full size.
/// Small pictures begin with a key frame, and what a test reads in full ones is not to be found in them.
enum FullPictures {
  /// The floor in words.
  static let floor = "50k"
  /// The option with the floor.
  static let options = ["--bitrate-floor", floor]
}
