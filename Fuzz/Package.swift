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
    fuzzer("FuzzHEVCSets", ["Media", "Platform"]),
    fuzzer("FuzzHEVCPackets"),
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
    .systemLibrary(name: "CSRTP"),
    .target(name: "SRTP", dependencies: ["RTP", "Platform", "CSRTP"], swiftSettings: instrumented),
    fuzzer("FuzzKeys", ["SRTP", "RTP", "Media", "Platform"]),
    .systemLibrary(name: "COpenSSL"),
    .target(name: "TLS", dependencies: ["Platform", "COpenSSL"], swiftSettings: instrumented),
    fuzzer("FuzzTLS", ["TLS", "COpenSSL"]),
    .target(name: "Adaptors", dependencies: ["Media", "Platform"], swiftSettings: instrumented),
    fuzzer("FuzzAnnexB", ["Adaptors", "Media"]),
    .systemLibrary(name: "CAVCodec"),
    .systemLibrary(name: "COpus"),
    .systemLibrary(name: "CYUV"),
    .systemLibrary(name: "CTurboJPEG"),
    .target(
      name: "PixelConversion", dependencies: ["Media", "Platform", "CYUV", "CTurboJPEG"], swiftSettings: instrumented),
    .target(
      name: "Decoding", dependencies: ["Adaptors", "PixelConversion", "Media", "Platform", "CAVCodec", "COpus"],
      swiftSettings: instrumented),
    fuzzer("FuzzDecoder", ["Decoding", "Adaptors", "Media", "Platform"]),
    // The client's dialogue is no one's business but the receiver's, and the fuzzer's.
    .target(
      name: "Receiving", dependencies: ["Adaptors", "SRTP", "RTSP", "RTP", "TLS", "Media", "Platform", "CLinux"],
      swiftSettings: instrumented + [.unsafeFlags(["-enable-testing"])]),
    fuzzer("FuzzRTSPClient", ["Receiving", "SRTP", "RTSP", "Platform"]),
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
