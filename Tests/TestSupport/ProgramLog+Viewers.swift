extension ProgramLog {
  /// Returns the ends of the viewers of a kind, such as `webrtc`, that have left, in their order: what follows the time in
  /// `viewer webrtc 127.0.0.1:50000 left camera after 3 s: ended`, empty for nothing.
  package func ends(ofViewers kind: String) -> [String] {
    lines.compactMap { line in
      guard line.hasPrefix("viewer \(kind) "), let left = line.firstRange(of: " left ") else { return nil }
      let time = line[left.upperBound...].firstRange(of: " s: ")
      return time.map { String(line[$0.upperBound...]) } ?? ""
    }
  }
}
