/// The release of these programs and libraries.
package enum Release {
  /// The version, by semantic versioning.
  package static let version = "0.1.0"
}
