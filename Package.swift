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
func target(
  _ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = [],
  _ settings: [SwiftSetting] = settings
) -> Target {
  .target(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: settings)
}

/// A target of tests. It does not depend on the programs that it runs, because those are linked otherwise. SwiftPM builds them beside it.
func test(_ name: String, _ dependencies: [Target.Dependency], _ settings: [SwiftSetting] = quick) -> Target {
  .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

/// A program of Examples, from the same sources as there, and with as little in sight: nothing that is for this package alone.
func example(_ name: String, _ folder: String, _ dependencies: [Target.Dependency]) -> Target {
  .executableTarget(
    name: name, dependencies: dependencies, path: "Examples/Sources/\(folder)", packageAccess: false)
}

/// The settings of tests, and of programs that only tests start: these are compiled more often than they run. Without optimization the
/// compiler would read each of these modules a second time, for an interface that nobody waits for.
let quick = settings + [.unsafeFlags(["-Onone", "-no-emit-module-separately-wmo"], .when(configuration: .release))]

/// The settings of targets that go through pictures byte by byte, which takes ten times as long in code that is not optimized.
let optimized = settings + [.unsafeFlags(["-O"], .when(configuration: .debug))]

/// The settings of targets that no frame passes through: small code instead of fast code.
let small = settings + [.unsafeFlags(["-Osize"], .when(configuration: .release))]

/// The linker's options of the shipped programs, which contain the runtime of Swift. gdb needs the section of the probes' base address,
/// which gold would leave out: nothing refers to it. Functions with the same code become one (--icf), half a megabyte of them. No library
/// looks the program's own symbols up, of which Swift would export three megabytes.
let shipped: [LinkerSetting] = [
  .unsafeFlags(
    ["-static-stdlib", "-l_FoundationCShims", "-l_FoundationCollections"]
      + ["-s", "--no-export-dynamic", "--icf=safe", "-z", "now", "-u", "_.stapsdt.base"].flatMap { ["-Xlinker", $0] },
    .when(configuration: .release))
]

/// The test targets to build, separated by commas; all of them where the variable is not set.
let testTargets = Context.environment["NIGHTJAR_TEST_TARGETS"].map { $0.split(separator: ",").map(String.init) }

/// `false` where the encoders' tests alone are built, as by `make test-without-x264`: they need neither RTP nor SRTP.
let needsTransport = testTargets != ["EncodingTests"]

let package = Package(
  name: "nightjar",
  products: [
    .executable(name: "nightjar", targets: ["nightjar"]),
    .executable(name: "nightjar-watch", targets: ["Watch"]),
    .library(name: "NightjarMedia", targets: ["Media", "Platform"]),
    .library(name: "NightjarCapture", targets: ["Capture"]),
    .library(name: "NightjarEncoding", targets: ["Encoding", "VAAPI", "X264", "X265"]),
    .library(name: "NightjarRTP", targets: ["RTP"]),
    .library(name: "NightjarRTSP", targets: ["RTSP"]),
    .library(name: "NightjarAdaptors", targets: ["Adaptors"]),
    .library(name: "NightjarDecoding", targets: ["Decoding", "Adaptors"]),
    .library(name: "NightjarReceiver", targets: ["Receiving", "Adaptors"]),
  ],
  traits: [
    .trait(name: "X264", description: "Software encoding by x264, which makes the binary GPL."),
    .trait(name: "X265", description: "Software encoding of HEVC by x265, which makes the binary GPL."),
    .default(enabledTraits: ["X264", "X265"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
    .package(url: "https://github.com/apple/swift-nio", from: "2.100.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0", traits: []),
  ],
  targets: [
    // The C side: one shim of our own, and one module map per system library.
    .target(name: "CLinux"),
    .target(name: "CPage"),
    .target(name: "CTracing"),
    .systemLibrary(name: "CX264"),
    .systemLibrary(name: "CX265"),
    .systemLibrary(name: "CVA"),
    .systemLibrary(name: "CYUV"),
    .systemLibrary(name: "CV4L"),
    .systemLibrary(name: "CTurboJPEG"),
    .systemLibrary(name: "CSystemd"),
    .systemLibrary(name: "CSRTP"),
    .systemLibrary(name: "COpenSSL"),
    .systemLibrary(name: "CALSA"),
    .systemLibrary(name: "COpus"),
    .systemLibrary(name: "CLAME"),
    .systemLibrary(name: "CSpeexDSP"),
    .systemLibrary(name: "CQREncode"),
    .systemLibrary(name: "CMosquitto"),
    .systemLibrary(name: "CAVCodec"),
    .systemLibrary(name: "CSDL"),

    // Data moves left to right; nothing here imports anything below it.
    target("Platform", ["CLinux"]),
    target("Alerts", ["Platform"], small),
    target("Media", ["Platform"]),
    target("PixelConversion", ["Media", "Platform", "CYUV", "CTurboJPEG"]),
    target("Capture", ["Media", "PixelConversion", "Platform", "CLinux", "CTracing", "CV4L"]),
    target("Sound", ["Platform", "CALSA", "COpus", "CLAME", "CSpeexDSP"]),
    target("X264", ["Media", "Platform", .target(name: "CX264", condition: .when(traits: ["X264"]))]),
    // Every chroma sample goes through it.
    .target(
      name: "X265", dependencies: ["Media", "Platform", .target(name: "CX265", condition: .when(traits: ["X265"]))],
      swiftSettings: optimized),
    target("VAAPI", ["Media", "Platform", "CVA"]),
    target(
      "Encoding",
      [
        "Media", "PixelConversion", "Platform", "VAAPI", .target(name: "X264", condition: .when(traits: ["X264"])),
        .target(name: "X265", condition: .when(traits: ["X265"])),
      ]),
    // Every sample and pixel goes through it, and tests simulate hours.
    .target(name: "Detection", dependencies: ["Media"], swiftSettings: optimized),
    target("RTP", ["Media", "Platform"]),
    target("SRTP", ["RTP", "Platform", "CSRTP"]),
    target("RTSP", ["RTP", "Platform"]),
    // The other half, for those who receive. The appliance has none of it.
    target("Adaptors", ["Media", "Platform"]),
    target("Decoding", ["Adaptors", "PixelConversion", "Media", "Platform", "CAVCodec", "COpus"]),
    target("TLS", ["Platform", "COpenSSL"]),
    target("Receiving", ["Adaptors", "SRTP", "RTSP", "RTP", "TLS", "Media", "Platform", "CLinux"]),
    target("Delivery", ["TLS", "Alerts", "Platform", "CLinux", "CMosquitto"], small),
    target("WebRTC", ["TLS", "SRTP", "RTP", "Media", "Platform"]),
    target("Host", ["Media", "Platform", "CLinux", "CSystemd"], small),
    .executableTarget(
      name: "Watch",
      dependencies: [
        "Receiving", "Decoding", "Adaptors", "RTP", "Media", "Platform", "CLinux", "CSDL",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: small, linkerSettings: shipped),
    target(
      "Streaming",
      ["Encoding", "Sound", "Detection", "PixelConversion", "SRTP", "RTP", "Media", "Platform", "CLinux", "CTracing"]),
    target(
      "Serving",
      [
        "Streaming", "WebRTC", "RTSP", "SRTP", "RTP", "TLS", "Delivery", "Alerts", "Media", "Platform", "CLinux",
        "CPage", "CQREncode",
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdCore", package: "hummingbird"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
      ],
      // CPage has the page.
      exclude: ["Page"], small),
    target(
      "Appliance",
      [
        "Serving", "Streaming", "Host", "Encoding", "VAAPI", "Capture", "Sound", "Detection", "SRTP", "RTP", "TLS",
        "Delivery", "Alerts", "Media", "Platform", "CLinux",
      ], small),
    .executableTarget(
      name: "nightjar",
      dependencies: [
        "Appliance", "Serving", "Streaming", "Host", "Encoding", "Capture", "Alerts", "Media", "Platform", "CLinux",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: small, linkerSettings: shipped),

    .executableTarget(
      name: "encoder-cost",
      dependencies: [
        "Encoding", "VAAPI", "Media", "Platform", .target(name: "X264", condition: .when(traits: ["X264"])),
      ],
      path: "Benchmarks/EncoderCost", swiftSettings: settings),
    .executableTarget(
      name: "rotation-cost", dependencies: ["PixelConversion", "Media", "Platform"], path: "Benchmarks/RotationCost",
      swiftSettings: settings),

    .executableTarget(
      name: "stillness-cost", dependencies: ["Capture", "Media", "Platform"], path: "Benchmarks/StillnessCost",
      swiftSettings: settings),

    .executableTarget(
      name: "trace-cost", dependencies: ["Streaming", "CTracing", "Media", "Platform"], path: "Benchmarks/TraceCost",
      swiftSettings: settings),

    .executableTarget(
      name: "srtp-cost", dependencies: ["SRTP", "RTP", "Media", "Platform"], path: "Benchmarks/SRTPCost",
      swiftSettings: settings),

    .executableTarget(
      name: "mp3-cost", dependencies: ["Sound", "Platform"], path: "Benchmarks/MP3Cost", swiftSettings: settings),

    .executableTarget(
      name: "detection-cost", dependencies: ["Detection", "Media", "Platform"], path: "Benchmarks/DetectionCost",
      swiftSettings: settings),

    // Examples/Package.swift builds these as another package does. Here they use the modules that are compiled already.
    example("encode-y4m", "EncodeY4M", ["Encoding", "Capture", "Media", "Platform"]),
    example("packetize-h264", "PacketizeH264", ["RTP", "Media", "Platform"]),
    example("camera-to-rtp", "CameraToRTP", ["Encoding", "Capture", "RTP", "Media", "Platform"]),
    example("serve-rtsp", "ServeRTSP", ["Encoding", "Capture", "RTSP", "RTP", "Media", "Platform"]),
    example("list-hardware", "ListHardware", ["Capture", "VAAPI", "Media"]),
    example("transcode", "Transcode", ["Receiving", "Decoding", "Adaptors", "Encoding", "Media"]),

    // What several test targets share; never linked into the program.
    .target(
      name: "TestSupport",
      dependencies: needsTransport
        ? ["SRTP", "RTP", "CSRTP", "CLinux", "Media", "Platform"] : ["CLinux", "Media", "Platform"],
      path: "Tests/TestSupport",
      exclude: needsTransport ? [] : ["SecureReceiver.swift", "StreamRecording+Packets.swift"], swiftSettings: optimized
    ),
    test("PlatformTests", ["Platform", "TestSupport"]),
    // Writes a history until it is killed.
    .executableTarget(
      name: "HistoryTool", dependencies: ["Alerts", "Platform"], path: "Tests/HistoryTool", swiftSettings: quick),
    test("AlertsTests", ["Alerts", "HistoryTool", "Platform", "TestSupport"]),
    .testTarget(
      name: "DeliveryTests", dependencies: ["Delivery", "TLS", "Alerts", "Platform", "TestSupport"],
      exclude: ["Servers", "HomeAssistant"],
      swiftSettings: quick),
    test("DetectionTests", ["Detection", "Media", "TestSupport"], optimized),
    test("MediaTests", ["Media", "Platform", "TestSupport"]),
    test("PixelConversionTests", ["PixelConversion", "Media", "Platform", "TestSupport"], optimized),
    test("CaptureTests", ["Capture", "PixelConversion", "Media", "Platform", "CLinux", "TestSupport"]),
    test("SoundTests", ["Sound", "COpus", "Platform", "TestSupport"], optimized),
    test("X264Tests", ["X264", "Encoding", "Media", "Platform", "TestSupport"], optimized),
    test("X265Tests", ["X265", "Media", "Platform", "TestSupport"], optimized),
    // libva reads its environment once a process, so each test of it is a process.
    .executableTarget(
      name: "VAEncodeTool", dependencies: ["VAAPI", "Media", "Platform"], path: "Tests/VAEncodeTool",
      exclude: ["Meter"],
      swiftSettings: optimized),
    test("StrictVADriverTests", ["TestSupport"]),
    test("VAAPITests", ["VAAPI", "VAEncodeTool", "Media", "Platform", "TestSupport"]),
    test(
      "EncodingTests",
      [
        "Encoding", "Media", "Platform", "TestSupport", .target(name: "X264", condition: .when(traits: ["X264"])),
        .target(name: "X265", condition: .when(traits: ["X265"])),
      ]),
    test(
      "DecodingTests",
      [
        "Decoding", "Adaptors", "RTP", "Media", "Platform", "CAVCodec", "COpus", "TestSupport",
        .target(name: "X264", condition: .when(traits: ["X264"])),
      ], optimized),
    .testTarget(
      name: "ReceivingTests",
      dependencies: [
        "Receiving", "Decoding", "Adaptors", "SRTP", "RTSP", "RTP", "Media", "Platform", "CLinux",
        "TestSupport",
      ], exclude: ["Servers"], swiftSettings: quick),
    test("RTPTests", ["RTP", "Media", "Platform", "TestSupport"]),
    .testTarget(
      name: "WebRTCTests",
      dependencies: ["WebRTC", "TLS", "SRTP", "RTP", "Platform", "COpenSSL", "TestSupport"],
      exclude: ["Offers"], swiftSettings: quick),
    test("SRTPTests", ["SRTP", "RTP", "Media", "Platform", "TestSupport", "COpenSSL"]),
    .testTarget(
      name: "RTSPTests", dependencies: ["RTSP", "RTP", "Media", "Platform", "TestSupport"], exclude: ["Captures"],
      swiftSettings: quick),
    .testTarget(
      name: "TLSTests",
      dependencies: [
        "Serving", "TLS", "Media", "Platform", "COpenSSL", "TestSupport",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ], exclude: ["Clients"], swiftSettings: quick),
    .executableTarget(
      name: "ServiceTool", dependencies: ["Host", "Media", "Platform"], path: "Tests/ServiceTool",
      swiftSettings: quick
    ),
    test("HostTests", ["Host", "ServiceTool", "Media", "Platform", "TestSupport"]),
    test(
      "StreamingTests",
      [
        "Streaming", "Encoding", "Capture", "Sound", "SRTP", "RTP", "Media", "Platform", "CLinux", "CTracing",
        "TestSupport",
      ]),
    .executableTarget(
      name: "ControlServerTool", dependencies: ["Serving", "Streaming", "Alerts", "Media", "Platform"],
      path: "Tests/ControlServerTool", swiftSettings: quick),
    test(
      "ServingTests",
      [
        "Serving", "ControlServerTool", "Streaming", "Encoding", "Capture", "WebRTC", "RTSP", "SRTP", "RTP", "Media",
        "Platform",
        "TestSupport", .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ]),
    .testTarget(
      name: "ApplianceTests",
      dependencies: [
        "Appliance", "Serving", "Streaming", "Encoding", "Capture", "Sound", "Host", "Delivery", "Alerts", "Media",
        "Platform", "TestSupport",
      ],
      exclude: ["Configuration/TOMLTest"], swiftSettings: quick),
    .executableTarget(
      name: "RTPReceiverTool", dependencies: ["RTP", "Media", "Platform"], path: "Tests/RTPReceiverTool",
      swiftSettings: quick),
    .testTarget(
      name: "PlayerTests",
      dependencies: [
        "Appliance", "Serving", "Streaming", "SRTP", "RTP", "Media", "Platform", "TestSupport",
      ], exclude: ["Clients"], swiftSettings: quick),
    // A USB camera for the rig's kernel.
    .executableTarget(
      name: "UVCCameraTool", dependencies: ["Media", "Platform", "CLinux"], path: "Tests/UVCCameraTool",
      swiftSettings: quick),
    test("RigTests", ["RTPReceiverTool", "UVCCameraTool", "Platform", "TestSupport"]),
  ]
)

if let testTargets {
  package.targets.removeAll { $0.type == .test && !testTargets.contains($0.name) }
}
