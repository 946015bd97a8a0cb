// swift-tools-version: 6.3
import PackageDescription

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

/// A target of ours: Swift 6 mode, warnings are errors.
func target(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

func test(_ name: String, _ dependencies: [Target.Dependency], _ settings: [SwiftSetting] = settings) -> Target {
  .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

/// Of tests that go through pictures byte by byte, which takes ten times as long in code that is not optimized.
let optimized = settings + [.unsafeFlags(["-O"], .when(configuration: .debug))]

/// The test targets to build, separated by commas; all of them where the variable is not set.
let testTargets = Context.environment["NIGHTJAR_TEST_TARGETS"].map { $0.split(separator: ",").map(String.init) }

let package = Package(
  name: "nightjar",
  products: [
    .executable(name: "nightjar", targets: ["nightjar"]),
    .library(name: "NightjarMedia", targets: ["Media"]),
    .library(name: "NightjarCapture", targets: ["Capture"]),
    .library(name: "NightjarEncoding", targets: ["Encoding", "VAAPI", "X264"]),
    .library(name: "NightjarRTP", targets: ["RTP"]),
    .library(name: "NightjarRTSP", targets: ["RTSP"]),
  ],
  traits: [
    .trait(name: "X264", description: "Software encoding by x264, which makes the binary GPL."),
    .default(enabledTraits: ["X264"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
    .package(url: "https://github.com/apple/swift-nio", from: "2.100.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0", traits: []),
    .package(url: "https://github.com/LebJe/TOMLKit", from: "0.6.0"),
  ],
  targets: [
    // The C side: one shim of our own, and one module map per system library.
    .target(name: "CLinux"),
    .target(name: "CTracing"),
    .systemLibrary(name: "CX264"),
    .systemLibrary(name: "CVA"),
    .systemLibrary(name: "CYUV"),
    .systemLibrary(name: "CV4L"),
    .systemLibrary(name: "CTurboJPEG"),
    .systemLibrary(name: "CSystemd"),
    .systemLibrary(name: "CSRTP"),
    .systemLibrary(name: "COpenSSL"),

    // Data moves left to right; nothing here imports anything below it.
    target("Media", ["CLinux"]),
    target("PixelConversion", ["Media", "CYUV", "CTurboJPEG"]),
    target("Threading", ["Media", "CLinux"]),
    target("FrameTracing", ["Media", "Threading", "CTracing"]),
    target("Capture", ["Media", "PixelConversion", "Threading", "CLinux", "CTracing", "CV4L"]),
    target("X264", ["Media", .target(name: "CX264", condition: .when(traits: ["X264"]))]),
    target("VAAPI", ["Media", "CVA"]),
    target(
      "Encoding",
      ["Media", "PixelConversion", "Threading", "VAAPI", .target(name: "X264", condition: .when(traits: ["X264"]))]),
    target("SystemBus", ["Media", "CLinux", "CSystemd"]),
    target("Discovery", ["Media", "Threading", "CLinux", "SystemBus"]),
    target("OrientationSensing", ["Media", "SystemBus"]),
    target("ThermalSensing", ["Media"]),
    target("SystemService", ["Media", "CLinux", "CSystemd"]),
    target(
      "Diagnosis",
      ["Media", "Threading", "Capture", "Encoding", "VAAPI", "ThermalSensing", "Credentials", "CLinux"]),
    target("TLS", ["Media", "COpenSSL"]),
    target("RTP", ["Media"]),
    target("SRTP", ["Media", "RTP", "CLinux", "CSRTP"]),
    target("RTSP", ["Media", "RTP"]),
    target("Credentials", ["Media", "CLinux", "TLS"]),
    target("Settings", ["Media", "CLinux", .product(name: "TOMLKit", package: "TOMLKit")]),
    target(
      "Streaming",
      [
        "Media", "PixelConversion", "Threading", "FrameTracing", "Capture", "Encoding", "RTP", "SRTP", "CLinux",
        "CTracing",
      ]),
    target(
      "Listening",
      [
        "Media", "Credentials", "TLS",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ]),
    target(
      "RTSPServer",
      [
        "RTSP", "Credentials", "Listening", "TLS", "Streaming", "SRTP", "RTP", "Threading", "Media",
        "CLinux",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ]),
    target(
      "Control",
      [
        "Media", "CLinux", "Credentials", "Listening", "TLS",
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdCore", package: "hummingbird"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
      ]),
    .executableTarget(
      name: "nightjar",
      dependencies: [
        "Control", "RTSPServer", "Listening", "Settings", "Credentials", "Streaming", "Capture", "Encoding",
        "OrientationSensing", "Diagnosis", "Discovery",
        "ThermalSensing", "SystemService", "VAAPI", "RTP", "SRTP", "Threading", "FrameTracing", "Media", "CLinux",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: settings),

    .executableTarget(
      name: "encoder-cost",
      dependencies: [
        "Encoding", "Threading", "VAAPI", "Media", .target(name: "X264", condition: .when(traits: ["X264"])),
      ],
      path: "Benchmarks/EncoderCost", swiftSettings: settings),
    .executableTarget(
      name: "rotation-cost", dependencies: ["PixelConversion", "Media"], path: "Benchmarks/RotationCost",
      swiftSettings: settings),

    .executableTarget(
      name: "stillness-cost", dependencies: ["Capture", "Media"], path: "Benchmarks/StillnessCost",
      swiftSettings: settings),

    .executableTarget(
      name: "trace-cost", dependencies: ["FrameTracing", "CTracing", "Media"], path: "Benchmarks/TraceCost",
      swiftSettings: settings),

    .executableTarget(
      name: "srtp-cost", dependencies: ["SRTP", "RTP", "Media"], path: "Benchmarks/SRTPCost", swiftSettings: settings),

    // What several test targets share; never linked into the program.
    .target(
      name: "TestSupport", dependencies: ["SRTP", "CSRTP", "Media"], path: "Tests/TestSupport", swiftSettings: optimized
    ),
    test("MediaTests", ["Media", "TestSupport"]),
    test("PixelConversionTests", ["PixelConversion", "Media", "TestSupport"], optimized),
    test("FrameTracingTests", ["FrameTracing", "CTracing", "Threading", "Media", "TestSupport", "nightjar"]),
    test("ThreadingTests", ["Threading", "Media", "TestSupport", "nightjar"]),
    test("CaptureTests", ["Capture", "PixelConversion", "Media", "CLinux", "TestSupport"]),
    test("X264Tests", ["X264", "Encoding", "Media", "TestSupport"], optimized),
    // libva reads its environment once a process, so each test of it is a process.
    .executableTarget(
      name: "VAEncodeTool", dependencies: ["VAAPI", "Media"], path: "Tests/VAEncodeTool", exclude: ["Meter"],
      swiftSettings: settings),
    test("StrictVADriverTests", ["TestSupport"]),
    test("VAAPITests", ["VAAPI", "VAEncodeTool", "Media", "TestSupport"]),
    test(
      "EncodingTests",
      ["Encoding", "Media", "TestSupport", .target(name: "X264", condition: .when(traits: ["X264"]))]),
    .executableTarget(
      name: "ServiceTool", dependencies: ["SystemService", "Media"], path: "Tests/ServiceTool", swiftSettings: settings),
    test("SystemServiceTests", ["ServiceTool", "TestSupport", "nightjar"]),
    test("DiscoveryTests", ["Discovery", "TestSupport", "nightjar"]),
    test("OrientationSensingTests", ["OrientationSensing", "Media", "TestSupport"]),
    test("ThermalSensingTests", ["ThermalSensing", "Media", "TestSupport"]),
    test("DiagnosisTests", ["Diagnosis", "ThermalSensing", "Media", "TestSupport", "nightjar"]),
    test("RTPTests", ["RTP", "Media", "TestSupport"]),
    test("SRTPTests", ["SRTP", "RTP", "Media", "TestSupport", "COpenSSL"]),
    .testTarget(
      name: "TLSTests",
      dependencies: [
        "TLS", "Listening", "Credentials", "Media", "TestSupport", "nightjar",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ], exclude: ["Clients"], swiftSettings: settings),
    .testTarget(
      name: "RTSPTests", dependencies: ["RTSP", "RTP", "Media", "TestSupport"], exclude: ["Captures"],
      swiftSettings: settings),
    test("SettingsTests", ["Settings", "Media", "TestSupport", "nightjar"]),
    test("CredentialsTests", ["Credentials", "Media", "TestSupport", "nightjar"]),
    test(
      "RTSPServerTests",
      [
        "RTSPServer", "RTSP", "Credentials", "Listening", "Streaming", "Capture", "Encoding", "SRTP", "RTP", "Media",
        "TestSupport", "nightjar",
      ]),
    test("StreamingTests", ["Streaming", "Threading", "Capture", "Encoding", "SRTP", "RTP", "Media", "TestSupport"]),
    .executableTarget(
      name: "ControlServerTool", dependencies: ["Control", "Credentials", "Listening", "Media"],
      path: "Tests/ControlServerTool", swiftSettings: settings),
    test("ControlTests", ["Control", "ControlServerTool", "Media", "TestSupport", "nightjar"]),
    .executableTarget(
      name: "RTPReceiverTool", dependencies: ["RTP", "Media"], path: "Tests/RTPReceiverTool", swiftSettings: settings),
    test("PlayerTests", ["Control", "SRTP", "RTP", "Streaming", "TestSupport", "nightjar"]),
    // A USB camera for the rig's kernel.
    .executableTarget(
      name: "UVCCameraTool", dependencies: ["Media", "CLinux"], path: "Tests/UVCCameraTool", swiftSettings: settings),
    test("RigTests", ["TestSupport", "RTPReceiverTool", "UVCCameraTool", "nightjar"]),
  ]
)

if let testTargets {
  package.targets.removeAll { $0.type == .test && !testTargets.contains($0.name) }
}
