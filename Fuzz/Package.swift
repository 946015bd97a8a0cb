// swift-tools-version: 6.3
// Coverage-guided fuzzing of the libraries that read what others wrote, which are built here with the fuzzer's instrumentation. `run` runs it.
import PackageDescription

let instrumented: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .unsafeFlags(["-sanitize=fuzzer", "-parse-as-library"]),
]

func fuzzer(_ name: String, _ libraries: [Target.Dependency] = ["RTP", "Media"]) -> Target {
  .executableTarget(
    name: name, dependencies: libraries + ["CFuzzer"], swiftSettings: instrumented,
    linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])])
}

let package = Package(
  name: "nightjar-fuzz",
  dependencies: [.package(url: "https://github.com/LebJe/TOMLKit", from: "0.6.0")],
  targets: [
    // The library's own sources, by symbolic link.
    .target(name: "CLinux"),
    .target(name: "Media", dependencies: ["CLinux"], swiftSettings: instrumented),
    .target(name: "RTP", dependencies: ["Media"], swiftSettings: instrumented),
    .target(name: "RTSP", dependencies: ["Media", "RTP"], swiftSettings: instrumented),
    .systemLibrary(name: "CFuzzer"),
    fuzzer("FuzzRTCP"),
    fuzzer("FuzzNetwork"),
    fuzzer("FuzzRTSPRequest", ["RTSP"]),
    fuzzer("FuzzRTSPInterleaved", ["RTSP"]),
    fuzzer("FuzzRTSPTransport", ["RTSP", "RTP"]),
    fuzzer("FuzzRTSPURL", ["RTSP"]),
    fuzzer("FuzzRTSPSession", ["RTSP", "RTP", "Media"]),
    // The parsers alone.
    .target(
      name: "CredentialsParsing", dependencies: ["Media"], path: "Sources/Credentials",
      sources: [
        "DigestAlgorithm.swift", "DigestAuthorization.swift", "DigestAuthorizationError.swift", "Role.swift",
        "UserName.swift",
        "UsersFile.swift", "UsersFileSyntaxError.swift",
      ],
      swiftSettings: instrumented),
    fuzzer("FuzzCredentials", ["CredentialsParsing"]),
    // Without what needs libsrtp2.
    .target(
      name: "KeyParsing", dependencies: ["RTP", "Media"], path: "Sources/SRTP",
      sources: [
        "CryptoAttribute.swift", "MIKEYMessage.swift", "MIKEYMessage+Parsing.swift", "SRTPKey.swift",
        "SRTPKeyError.swift", "SRTPSuite.swift",
      ],
      swiftSettings: instrumented),
    fuzzer("FuzzKeys", ["KeyParsing", "RTP", "Media"]),
    .systemLibrary(name: "COpenSSL"),
    .target(name: "TLS", dependencies: ["Media", "COpenSSL"], swiftSettings: instrumented),
    fuzzer("FuzzTLS", ["TLS", "COpenSSL"]),
    // The TOML library itself is not instrumented.
    .target(
      name: "Settings", dependencies: ["Media", "CLinux", .product(name: "TOMLKit", package: "TOMLKit")],
      swiftSettings: instrumented),
    fuzzer("FuzzSettings", ["Settings"]),
  ]
)
