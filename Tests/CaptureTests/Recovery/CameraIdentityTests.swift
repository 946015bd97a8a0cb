import CLinux
import Capture
import Foundation
import TestSupport
import Testing

/// The search for a lost camera, and the messages that are a reason to look.
@Suite struct CameraIdentityTests {
  /// A sysfs of files, with devices as the kernel lays them out.
  private struct Machine {
    let directory: TemporaryDirectory
    init() throws { directory = try TemporaryDirectory() }
    var root: String { directory.url.path }

    func write(_ text: String, _ path: String) throws {
      let url = directory.url.appendingPathComponent(path)
      try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
      try text.write(to: url, atomically: true, encoding: .utf8)
    }

    /// Plugs a USB camera with two nodes, pictures and metadata, into `port`.
    func plug(_ name: String, port: String, serial: String?, nodes: [Int]) throws {
      try write("046d\n", "devices/usb1/\(port)/idVendor")
      try write("082d\n", "devices/usb1/\(port)/idProduct")
      if let serial { try write("\(serial)\n", "devices/usb1/\(port)/serial") }
      for (index, node) in nodes.enumerated() {
        try write("\(name)\n", "class/video4linux/video\(node)/name")
        try write("\(index)\n", "class/video4linux/video\(node)/index")
        let device = directory.url.appendingPathComponent("devices/usb1/\(port)/\(port):1.0")
        try FileManager.default.createDirectory(at: device, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
          atPath: directory.path("class/video4linux/video\(node)/device"), withDestinationPath: device.path)
      }
    }

    func unplug(_ nodes: [Int]) throws {
      for node in nodes { try FileManager.default.removeItem(atPath: directory.path("class/video4linux/video\(node)")) }
    }

    var nodes: [VideoNode] { VideoNode.all(sysfs: root) }

    func traits(_ node: Int) throws -> CameraTraits {
      try #require(nodes.first { $0.path == "/dev/video\(node)" }).identity.distinguishing(among: nodes)
    }
  }

  @Test func `a camera with a serial number is known at any port`() throws {
    let machine = try Machine()
    try machine.plug("C920", port: "1-1", serial: "ABC", nodes: [0, 1])
    try machine.plug("C920", port: "1-2", serial: "XYZ", nodes: [2, 3])
    let traits = try machine.traits(0)
    try machine.unplug([0, 1])
    #expect(traits.matches(in: machine.nodes).isEmpty)
    try machine.plug("C920", port: "1-4", serial: "ABC", nodes: [5, 6])
    #expect(traits.matches(in: machine.nodes).map(\.path) == ["/dev/video5"])
  }

  @Test func `two of the same serial number are told apart by their ports`() throws {
    let machine = try Machine()
    try machine.plug("C920", port: "1-1", serial: "200901010001", nodes: [0, 1])
    try machine.plug("C920", port: "1-2", serial: "200901010001", nodes: [2, 3])
    let traits = try machine.traits(0)
    try machine.unplug([0, 1])
    #expect(traits.matches(in: machine.nodes).isEmpty)
    try machine.plug("C920", port: "1-1", serial: "200901010001", nodes: [7, 8])
    #expect(traits.matches(in: machine.nodes).map(\.path) == ["/dev/video7"])
  }

  @Test func `a camera without a serial number is identified by its port, or by a name that no other has`() throws {
    let machine = try Machine()
    try machine.plug("Cheap", port: "1-1", serial: nil, nodes: [0])
    let alone = try machine.traits(0)
    try machine.plug("Cheap", port: "1-2", serial: nil, nodes: [2])
    let beside = try machine.traits(0)
    try machine.unplug([0])
    #expect(beside.matches(in: machine.nodes).isEmpty, "the other one is not taken")
    #expect(alone.matches(in: machine.nodes).map(\.path) == ["/dev/video2"])
    try machine.plug("Other", port: "1-1", serial: nil, nodes: [4])
    #expect(beside.matches(in: machine.nodes).isEmpty, "another model at its port is not taken")
    try machine.plug("Cheap", port: "1-3", serial: nil, nodes: [9])
    #expect(alone.matches(in: machine.nodes).isEmpty, "two that are alike are not guessed at")
  }

  @Test func `nonsense in sysfs is no camera`() throws {
    let machine = try Machine()
    try machine.write("\u{7}\n", "class/video4linux/video0/name")
    try machine.write("x", "class/video4linux/videoX/name")
    #expect(machine.nodes.isEmpty)
    #expect(VideoNode.all(sysfs: "/nonexistent").isEmpty)
  }

  private static func announces(_ bytes: [UInt8]) -> Bool {
    bytes.withUnsafeBytes { DeviceEventSocket.announcesVideo($0) }
  }

  /// As the kernel sends it (`lib/kobject_uevent.c`), and as `udevadm monitor` shows it.
  private static func kernel(_ action: String, _ subsystem: String) -> [UInt8] {
    let path = "/devices/pci0000:00/usb1/1-1/1-1:1.0/video4linux/video0"
    return Array("\(action)@\(path)\0ACTION=\(action)\0DEVPATH=\(path)\0SUBSYSTEM=\(subsystem)\0SEQNUM=4711\0".utf8)
  }

  /// As udev sends it: systemd's `struct monitor_netlink_header`, 40 bytes, then the properties.
  private static func udev(_ properties: String, offset: UInt32 = 40) -> [UInt8] {
    var bytes = Array("libudev\0".utf8) + [0xfe, 0xed, 0xca, 0xfe]
    for value in [40, offset, UInt32(properties.utf8.count), 1, 2, 3, 4] {
      bytes += withUnsafeBytes(of: value, Array.init)
    }
    return bytes + Array(properties.utf8)
  }

  @Test func `a video device that comes is a reason to look, and nothing else is`() {
    #expect(Self.announces(Self.kernel("add", "video4linux")))
    #expect(Self.announces(Self.kernel("change", "video4linux")))
    #expect(!Self.announces(Self.kernel("remove", "video4linux")))
    #expect(!Self.announces(Self.kernel("add", "usb")))
    #expect(!Self.announces(Self.kernel("add", "video4linux2")))
    #expect(Self.announces(Self.udev("ACTION=add\0SUBSYSTEM=video4linux\0DEVNAME=/dev/video0\0")))
    #expect(!Self.announces(Self.udev("ACTION=remove\0SUBSYSTEM=video4linux\0")))
    #expect(!Self.announces(Self.udev("ACTION=add\0SUBSYSTEM=video4linux\0", offset: 4_000_000_000)))
    #expect(!Self.announces(Array("libudev\0".utf8)))
    #expect(!Self.announces([]))
  }

  @Test func `only the kernel and root are listened to`() {
    func trusts(port: UInt32, group: UInt32, user: UInt32) -> Bool {
      DeviceEventSocket.isTrusted(nightjar_device_event_sender(port: port, group: group, user: user))
    }
    #expect(trusts(port: 0, group: 1, user: 0))
    #expect(trusts(port: 812, group: 2, user: 0))
    #expect(!trusts(port: 812, group: 2, user: 1000))
    #expect(!trusts(port: 812, group: 0, user: 0))
    #expect(!trusts(port: 812, group: 2, user: .max))
  }
}
