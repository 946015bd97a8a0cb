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

func fuzzer(_ name: String, _ libraries: [Target.Dependency] = ["RTP", "Media", "Platform"]) -> Target {
  .executableTarget(
    name: name, dependencies: libraries + ["CFuzzer"], swiftSettings: instrumented,
    linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])])
}

let package = Package(
  name: "nightjar-fuzz",
  targets: [
    // The library's own sources, by symbolic link.
    .target(name: "CLinux"),
    .target(name: "Platform", dependencies: ["CLinux"], swiftSettings: instrumented),
    .target(name: "Media", dependencies: ["Platform"], swiftSettings: instrumented),
    .target(name: "RTP", dependencies: ["Media", "Platform"], swiftSettings: instrumented),
    .target(name: "RTSP", dependencies: ["RTP", "Platform"], swiftSettings: instrumented),
    // What passes a camera's own H.264 on, without the encoders.
    .target(
      name: "Encoding", dependencies: ["Media", "Platform"],
      sources: ["KeyFrames.swift", "PassThroughEncoder.swift", "PassedStream.swift"],
      swiftSettings: instrumented),
    .systemLibrary(name: "CFuzzer"),
    fuzzer("FuzzRTCP"),
    fuzzer("FuzzNetwork"),
    fuzzer("FuzzPassedStream", ["Encoding", "Media", "Platform"]),
    fuzzer("FuzzRTSPRequest", ["RTSP"]),
    fuzzer("FuzzRTSPInterleaved", ["RTSP"]),
    fuzzer("FuzzRTSPTransport", ["RTSP", "RTP"]),
    fuzzer("FuzzRTSPURL", ["RTSP"]),
    fuzzer("FuzzRTSPSession", ["RTSP", "RTP", "Media", "Platform"]),
    // The parsers alone.
    .target(
      name: "CredentialsParsing", dependencies: ["Platform"], path: "Sources/Access",
      sources: [
        "DigestAlgorithm.swift", "DigestAuthorization.swift", "DigestAuthorizationError.swift", "Role.swift",
        "UserName.swift",
        "UsersFile.swift", "UsersFileSyntaxError.swift",
      ],
      swiftSettings: instrumented),
    fuzzer("FuzzCredentials", ["CredentialsParsing"]),
    // The keys alone, without what needs libsrtp2.
    .target(
      name: "SRTP", dependencies: ["RTP", "Platform"],
      sources: [
        "Keys/CryptoAttribute.swift", "Keys/MIKEYMessage.swift", "Keys/MIKEYMessage+Parsing.swift",
        "Keys/SRTPKey.swift", "Keys/SRTPKeyError.swift", "Keys/SRTPSuite.swift",
      ],
      swiftSettings: instrumented),
    fuzzer("FuzzKeys", ["SRTP", "RTP", "Media", "Platform"]),
    .systemLibrary(name: "COpenSSL"),
    .target(name: "TLS", dependencies: ["Platform", "COpenSSL"], swiftSettings: instrumented),
    fuzzer("FuzzTLS", ["TLS", "COpenSSL"]),
    .target(name: "WebRTC", dependencies: ["TLS", "SRTP", "RTP", "Media", "Platform"], swiftSettings: instrumented),
    fuzzer("FuzzSessionOffer", ["WebRTC", "RTP", "Platform"]),
    fuzzer("FuzzSTUN", ["WebRTC", "TLS", "Platform"]),
    fuzzer("FuzzPeers", ["WebRTC", "TLS", "Platform", "COpenSSL"]),
    // The file and its layers, without the values of the settings.
    .target(
      name: "Configuration", dependencies: ["Platform", "CLinux"],
      sources: [
        "TOML", "ConfigurationError.swift", "ConfigurationFaults.swift", "ConfigurationFile.swift",
        "ConfigurationFile+Reading.swift", "ConfigurationLimits.swift", "ConfigurationMerge.swift",
        "ConfigurationOption.swift", "ConfigurationReader.swift", "EnvironmentSettings.swift", "OptionLayer.swift",
      ],
      swiftSettings: instrumented),
    fuzzer("FuzzConfiguration", ["Configuration"]),
  ]
)
