// swift-tools-version: 6.3
// Coverage-guided fuzzing of the libraries that read what others wrote, which are built here with the fuzzer's instrumentation. `run` runs it.
import PackageDescription

// FUZZ_SANITIZERS=fuzzer,address finds wrong accesses to memory as well.
let sanitizers = "-sanitize=" + (Context.environment["FUZZ_SANITIZERS"] ?? "fuzzer")

let instrumented: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .unsafeFlags([sanitizers, "-parse-as-library"]),
]

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
    // The parsers alone.
    .target(
      name: "CredentialsParsing", dependencies: ["Platform"], path: "Sources/Access",
      sources: [
        "DigestAlgorithm.swift", "DigestAuthorization.swift", "DigestAuthorizationError.swift", "Role.swift",
        "UserName.swift",
        "UsersFile.swift", "UsersFileSyntaxError.swift",
      ],
      swiftSettings: instrumented),
    .systemLibrary(name: "CSRTP"),
    .target(name: "SRTP", dependencies: ["RTP", "Platform", "CSRTP"], swiftSettings: instrumented),
    .systemLibrary(name: "COpenSSL"),
    .target(name: "TLS", dependencies: ["Platform", "COpenSSL"], swiftSettings: instrumented),
    .target(name: "Adaptors", dependencies: ["Media", "Platform"], swiftSettings: instrumented),
    .systemLibrary(name: "CAVCodec"),
    .systemLibrary(name: "COpus"),
    .systemLibrary(name: "CYUV"),
    .systemLibrary(name: "CTurboJPEG"),
    .target(
      name: "PixelConversion", dependencies: ["Media", "Platform", "CYUV", "CTurboJPEG"], swiftSettings: instrumented),
    .target(
      name: "Decoding", dependencies: ["Adaptors", "PixelConversion", "Media", "Platform", "CAVCodec", "COpus"],
      swiftSettings: instrumented),
    .target(
      name: "Receiving", dependencies: ["Adaptors", "SRTP", "RTSP", "RTP", "TLS", "Media", "Platform", "CLinux"],
      swiftSettings: instrumented),
    .target(name: "WebRTC", dependencies: ["TLS", "SRTP", "RTP", "Media", "Platform"], swiftSettings: instrumented),
    // The file and its layers, without the values of the settings.
    .target(
      name: "Configuration", dependencies: ["Platform", "CLinux"],
      sources: [
        "TOML", "ConfigurationError.swift", "ConfigurationFaults.swift", "ConfigurationFile.swift",
        "ConfigurationFile+Reading.swift", "ConfigurationLimits.swift", "ConfigurationMerge.swift",
        "ConfigurationOption.swift", "ConfigurationReader.swift", "EnvironmentSettings.swift", "OptionLayer.swift",
      ],
      swiftSettings: instrumented),
    .executableTarget(
      name: "Fuzzers",
      dependencies: [
        "Receiving", "WebRTC", "Decoding", "Adaptors", "Encoding", "Configuration", "CredentialsParsing", "TLS", "SRTP",
        "RTSP", "RTP", "Media", "Platform", "COpenSSL", "CFuzzer",
      ],
      swiftSettings: instrumented,
      linkerSettings: [.unsafeFlags([sanitizers, "-use-ld=lld"])]),
  ]
)
