import CLinux
import Foundation
import TestSupport

/// A responder on `boxb` that announces whatever it is told to, as no Avahi would: its packets are made of bytes.
struct MulticastDNSResponder {
  /// One service instance.
  struct Service {
    /// The labels of its name.
    var name: [[UInt8]]
    var type = "_rtsp._tcp"
    var port = 554
    var txt: [[UInt8]] = [Array("path=/x".utf8)]

    init(_ name: [UInt8], txt: [String] = ["path=/x"], port: Int = 554) {
      (self.name, self.txt, self.port) = ([name], txt.map { Array($0.utf8) }, port)
    }

    init(_ name: String, txt: [String] = ["path=/x"]) { self.init(Array(name.utf8), txt: txt) }

    init(_ name: String, bytes txt: [[UInt8]]) {
      self.init(name)
      self.txt = txt
    }

    init(labels: [String], type: String) {
      self.init("")
      (name, self.type) = (labels.map { Array($0.utf8) }, type)
    }

    fileprivate var json: [String: Any] {
      func hex(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }
      return ["name": name.map(hex), "type": type, "port": port, "txt": txt.map(hex)]
    }
  }

  let process: Subprocess

  /// Announces `services` again and again, all as PTR records of `_rtsp._tcp.local`.
  ///
  /// - Parameter generation: if it is given, so many at a time, which take their leave when the next ones come.
  init(_ services: [Service], generation: Int = 0, on hosts: AvahiHosts) throws {
    let list = hosts.directory.path("services.json")
    try JSONSerialization.data(withJSONObject: services.map(\.json)).write(to: URL(fileURLWithPath: list))
    let words = ["python3", "-c", Self.script, list, AvahiHosts.Host.boxb.address, "\(generation)"]
    process = try hosts.start(words, on: .boxb)
  }

  /// RFC 1035 section 4.1, RFC 6762 sections 8.3 and 10.1.
  private static let script = #"""
    import json, socket, struct, sys, time

    path, address, generation = sys.argv[1], sys.argv[2], int(sys.argv[3])
    A, PTR, TXT, SRV = 1, 12, 16, 33

    def name(*labels):
        return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"

    def record(owner, kind, data, life, unique=True):
        return owner + struct.pack(">HHIH", kind, 0x8001 if unique else 1, life, len(data)) + data

    HOST = name(b"other", b"local")

    def packet(service, life=120):
        kind = [part.encode() for part in service["type"].split(".")]
        own = name(*map(bytes.fromhex, service["name"]), *kind, b"local")
        text = b"".join(bytes([len(string) // 2]) + bytes.fromhex(string) for string in service["txt"]) or b"\0"
        records = [
            record(name(b"_rtsp", b"_tcp", b"local"), PTR, own, life, False),
            record(own, SRV, struct.pack(">HHH", 0, 0, service["port"]) + HOST, life),
            record(own, TXT, text, life),
            record(HOST, A, socket.inet_aton(address), 120),
        ]
        return struct.pack(">6H", 0, 0x8400, 0, len(records), 0, 0) + b"".join(records)

    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
    out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    out.bind((address, 5353))

    def send(packets):
        for data in packets:
            out.sendto(data, ("224.0.0.251", 5353))
            time.sleep(0.002)

    services = json.load(open(path))
    size, first = generation or len(services), 0
    while True:
        now = services[first:first + size]
        send(map(packet, now))
        time.sleep(0.5)
        if generation:
            send(packet(service, 0) for service in now)
            first = (first + size) % len(services)
    """#
}
