import TestSupport

extension DescriptionLines {
  /// The encodings of all payload types, such as `H265/90000`, in their order.
  var encodings: [String] { attributes("rtpmap").compactMap { $0.split(separator: " ").last.map(String.init) } }
}
