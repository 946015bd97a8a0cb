// swift-tools-version: 6.3
// Coverage-guided fuzzing of the RTP library, which is built here with the fuzzer's instrumentation. `run` runs it.
import PackageDescription

let instrumented: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .unsafeFlags(["-sanitize=fuzzer", "-parse-as-library"]),
]

func fuzzer(_ name: String) -> Target {
  .executableTarget(
    name: name, dependencies: ["RTP", "Media", "CFuzzer"], swiftSettings: instrumented,
    linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])])
}

let package = Package(
  name: "nightjar-fuzz",
  targets: [
    // The library's own sources, by symbolic link.
    .target(name: "CLinux"),
    .target(name: "Media", dependencies: ["CLinux"], swiftSettings: instrumented),
    .target(name: "RTP", dependencies: ["Media"], swiftSettings: instrumented),
    .systemLibrary(name: "CFuzzer"),
    fuzzer("FuzzRTCP"),
    fuzzer("FuzzNetwork"),
  ]
)
