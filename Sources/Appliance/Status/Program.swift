/// The program.
package enum Program {
  /// The version of the program.
  package static let version = "0.1.0"
}
