import Testing
import XCTest

/// The entry point of all tests. With it, SwiftPM does not look for classes of XCTest, for which it would need an index of the symbols.
@main struct Runner {
  static func main() async {
    if CommandLine.arguments.contains("swift-testing") { await Testing.__swiftPMEntryPoint() as Never }
    // `swift test` asks XCTest first, which has nothing here.
    XCTMain([])
  }
}
