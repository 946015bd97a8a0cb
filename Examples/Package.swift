// swift-tools-version: 6.3
// Small programs on nightjar's libraries, as any other package would use them.
import PackageDescription

let package = Package(
  name: "nightjar-examples",
  dependencies: [
    .package(name: "nightjar", path: "..")
  ],
  targets: [
    .executableTarget(
      name: "encode-y4m",
      dependencies: [
        .product(name: "NightjarMedia", package: "nightjar"),
        .product(name: "NightjarCapture", package: "nightjar"),
        .product(name: "NightjarEncoding", package: "nightjar"),
      ],
      path: "Sources/EncodeY4M"),
    .executableTarget(
      name: "packetize-h264",
      dependencies: [
        .product(name: "NightjarMedia", package: "nightjar"),
        .product(name: "NightjarRTP", package: "nightjar"),
      ],
      path: "Sources/PacketizeH264"),
    .executableTarget(
      name: "camera-to-rtp",
      dependencies: [
        .product(name: "NightjarMedia", package: "nightjar"),
        .product(name: "NightjarCapture", package: "nightjar"),
        .product(name: "NightjarEncoding", package: "nightjar"),
        .product(name: "NightjarRTP", package: "nightjar"),
      ],
      path: "Sources/CameraToRTP"),
    .executableTarget(
      name: "serve-rtsp",
      dependencies: [
        .product(name: "NightjarMedia", package: "nightjar"),
        .product(name: "NightjarCapture", package: "nightjar"),
        .product(name: "NightjarEncoding", package: "nightjar"),
        .product(name: "NightjarRTP", package: "nightjar"),
        .product(name: "NightjarRTSP", package: "nightjar"),
      ],
      path: "Sources/ServeRTSP"),
    .executableTarget(
      name: "list-hardware",
      dependencies: [
        .product(name: "NightjarMedia", package: "nightjar"),
        .product(name: "NightjarCapture", package: "nightjar"),
        .product(name: "NightjarEncoding", package: "nightjar"),
      ],
      path: "Sources/ListHardware"),
    .executableTarget(
      name: "transcode",
      dependencies: [
        .product(name: "NightjarMedia", package: "nightjar"),
        .product(name: "NightjarEncoding", package: "nightjar"),
        .product(name: "NightjarDecoding", package: "nightjar"),
        .product(name: "NightjarReceiver", package: "nightjar"),
      ],
      path: "Sources/Transcode"),
  ]
)
