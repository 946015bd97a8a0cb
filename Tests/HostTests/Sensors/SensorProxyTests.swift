import Foundation
import Host
import Media
import Platform
import TestSupport
import Testing

/// `iio-sensor-proxy`'s interface, served by another program on a bus of the test's own.
@Suite struct SensorProxyTests {
  /// A message bus and, on it, what passes for iio-sensor-proxy: it says what the file `orientation` beside
  /// it holds, which it looks at again and again.
  final class Bus {
    let directory: TemporaryDirectory
    let address: String
    private let daemon: Subprocess
    private var proxy: Subprocess?

    init() throws {
      directory = try TemporaryDirectory()
      let socket = directory.url.appendingPathComponent("bus").path
      address = "unix:path=\(socket)"
      daemon = try Subprocess(
        ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address", "--address=\(address)"],
        in: directory)
      // The socket is there before anybody may connect to it; the address is printed afterwards.
      try wait("the bus") { [daemon] in daemon.outputSoFar.contains("unix:") }
    }

    deinit {
      proxy?.send(SIGKILL)
      // Not SIGTERM, which it may have inherited blocked.
      daemon.send(SIGKILL)
      _ = try? daemon.wait(limit: 10)
    }

    func startProxy(hasAccelerometer: Bool = true, refuses: Bool = false) throws {
      let script = directory.url.appendingPathComponent("proxy.py")
      try Data(Self.program.utf8).write(to: script)
      try say("normal")
      let started = directory.url.appendingPathComponent("started").path
      proxy = try Subprocess(
        [
          "/usr/bin/python3", script.path, directory.url.path, hasAccelerometer ? "1" : "0", refuses ? "1" : "0",
        ], in: directory, environment: ["DBUS_SESSION_BUS_ADDRESS": address])
      try wait("the proxy") { FileManager.default.fileExists(atPath: started) }
    }

    func stopProxy() throws {
      proxy?.send(SIGKILL)
      _ = try proxy?.wait(limit: 10)
      proxy = nil
    }

    /// Changes what the proxy says.
    func say(_ orientation: String) throws {
      try Data(orientation.utf8).write(to: directory.url.appendingPathComponent("orientation"), options: .atomic)
    }

    var isClaimed: Bool {
      FileManager.default.fileExists(atPath: directory.url.appendingPathComponent("claimed").path)
    }

    private func wait(_ what: String, until condition: () -> Bool) throws {
      let hasStarted = eventually { condition() }
      try #require(hasStarted, "\(what) did not start: \(daemon.errorSoFar) \(proxy?.errorSoFar ?? "")")
    }

    static let program = """
      import os, sys
      import dbus, dbus.service, dbus.mainloop.glib
      from gi.repository import GLib
      folder, has, refuses = sys.argv[1], sys.argv[2] == "1", sys.argv[3] == "1"
      dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
      bus = dbus.SessionBus()
      NAME = "net.hadess.SensorProxy"
      PROPERTIES = "org.freedesktop.DBus.Properties"

      class Refused(dbus.DBusException):
          _dbus_error_name = "org.freedesktop.DBus.Error.AccessDenied"

      class Proxy(dbus.service.Object):
          said = "normal"

          @dbus.service.method(PROPERTIES, in_signature="ss", out_signature="v")
          def Get(self, interface, name):
              return {"HasAccelerometer": dbus.Boolean(has), "AccelerometerOrientation": self.said}[name]

          @dbus.service.signal(PROPERTIES, signature="sa{sv}as")
          def PropertiesChanged(self, interface, changed, invalidated):
              pass

          @dbus.service.method(NAME)
          def ClaimAccelerometer(self):
              if refuses:
                  raise Refused("not for you")
              open(os.path.join(folder, "claimed"), "w").close()

      proxy = Proxy(bus, "/net/hadess/SensorProxy")
      name = dbus.service.BusName(NAME, bus, do_not_queue=True)

      def look():
          said = open(os.path.join(folder, "orientation")).read()
          if said != proxy.said:
              proxy.said = said
              proxy.PropertiesChanged(NAME, {"AccelerometerOrientation": said}, [])
          return True

      look()
      GLib.timeout_add(10, look)
      open(os.path.join(folder, "started"), "w").close()
      GLib.MainLoop().run()
      """
  }

  /// The wait for an answer. On a busy machine, the bus or the proxy may stand still for longer than the usual limit.
  private static let patience = SensorProxy.patience * 30

  @Test func `the proxy's orientation is told at first and at each change`() throws {
    let bus = try Bus()
    try bus.startProxy()
    let interrupt = try Interrupt()
    let proxy = try SensorProxy(busAddress: bus.address, patience: Self.patience)
    #expect(bus.isClaimed)
    #expect(try proxy.next(interrupt: interrupt) == .normal)
    for (word, posture) in [("left-up", DevicePosture.leftUp), ("bottom-up", .bottomUp), ("right-up", .rightUp)] {
      try bus.say(word)
      #expect(try proxy.next(interrupt: interrupt) == posture)
    }
    // What it does not know is no change.
    try bus.say("undefined")
    usleep(200_000)
    try bus.say("sideways")
    usleep(200_000)
    try bus.say("normal")
    #expect(try proxy.next(interrupt: interrupt) == .normal)
  }

  @Test func `waiting ends when it is interrupted`() throws {
    let bus = try Bus()
    try bus.startProxy()
    let end = try End()
    let proxy = try SensorProxy(busAddress: bus.address, patience: Self.patience)
    #expect(try proxy.next(interrupt: end.interrupt) == .normal)
    DispatchQueue.global().asyncAfter(deadline: .now() + 0.3) { end.interrupt.fire() }
    #expect(try proxy.next(interrupt: end.interrupt) == nil)
  }

  @Test func `a proxy that ends while it is waited for is said so`() throws {
    let bus = try Bus()
    try bus.startProxy()
    let interrupt = try Interrupt()
    let proxy = try SensorProxy(busAddress: bus.address, patience: Self.patience)
    #expect(try proxy.next(interrupt: interrupt) == .normal)
    try bus.stopProxy()
    #expect(throws: SensorError.noProxy) { try proxy.next(interrupt: interrupt) }
  }

  @Test func `a missing proxy, one without an accelerometer, a refusal and a missing bus are distinguished`() throws {
    let bus = try Bus()
    #expect(throws: SensorError.noProxy) { try SensorProxy(busAddress: bus.address, patience: Self.patience) }
    try bus.startProxy(refuses: true)
    #expect(throws: SensorError.bus("ClaimAccelerometer", reason: "not for you")) {
      try SensorProxy(busAddress: bus.address, patience: Self.patience)
    }
    let other = try Bus()
    try other.startProxy(hasAccelerometer: false)
    #expect(throws: SensorError.proxyWithoutAccelerometer) {
      try SensorProxy(busAddress: other.address, patience: Self.patience)
    }
    #expect(throws: SensorError.bus("unix:path=/nonexistent", reason: "No such file or directory")) {
      try SensorProxy(busAddress: "unix:path=/nonexistent")
    }
    #expect(throws: SensorError.self) { try SensorProxy(busAddress: "no address") }
  }

  @Test func `a bus that takes connections and says nothing is given up`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.url.appendingPathComponent("mute").path
    let mute = try Subprocess(
      [
        "/usr/bin/python3", "-c",
        """
        import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
        print("listens", flush=True); time.sleep(600)
        """,
        path,
      ], in: directory)
    defer { mute.send(SIGKILL) }
    // Between bind and listen it refuses.
    #expect(eventually { mute.outputSoFar.contains("listens") })
    let start = Instant.now()
    #expect(throws: SensorError.bus("connecting", reason: "Connection timed out")) {
      try SensorProxy(busAddress: "unix:path=\(path)")
    }
    #expect(Instant.now() - start < SensorProxy.patience * 10)
  }

  @Test func `the proxy goes before the accelerometer`() throws {
    let bus = try Bus()
    try bus.startProxy()
    let found = try OrientationSensor.open(root: "/nonexistent", busAddress: bus.address, patience: Self.patience)
    #expect(found.name == "iio-sensor-proxy")
    #expect(throws: SensorError.noAccelerometer(root: "/nonexistent")) {
      try OrientationSensor.open(root: "/nonexistent", busAddress: "unix:path=/nonexistent")
    }
  }
}

/// An interrupt that two threads have.
private final class End: Sendable {
  let interrupt: Interrupt
  init() throws { interrupt = try Interrupt() }
}
