// swift-tools-version: 6.2
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

func test(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

let package = Package(
  name: "nightjar",
  products: [
    .library(name: "Media", targets: ["Media"])
  ],
  dependencies: [
  ],
  targets: [
    // The C side: one shim of our own, and one module map per system library.
    .target(name: "CLinux"),
    .systemLibrary(name: "CX264"),
    .systemLibrary(name: "CYUV"),
    .systemLibrary(name: "CV4L"),
    .systemLibrary(name: "CTurboJPEG"),

    // Data moves left to right; nothing here imports anything below it.
    target("Media", ["CLinux"]),
  ]
)
