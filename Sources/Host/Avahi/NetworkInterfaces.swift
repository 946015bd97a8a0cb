import CLinux
import Glibc
import Platform

/// The network interfaces of this machine, by their addresses.
enum NetworkInterfaces {
  /// Returns the index of the interface with the numeric `address`; nil where no interface has it now.
  static func index(of address: String) -> Int32? {
    guard let wanted = IPAddress(address)?.bytes else { return nil }
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return nil }
    defer { freeifaddrs(list) }
    var next = list
    while let entry = next?.pointee {
      next = entry.ifa_next
      guard let socket = entry.ifa_addr, let name = entry.ifa_name, bytes(at: socket) == wanted else { continue }
      let index = if_nametoindex(name)
      if index > 0 { return Int32(bitPattern: index) }
    }
    return nil
  }

  /// Returns the name of an interface; nil where no interface has this index.
  static func name(of index: Int32) -> String? {
    guard index > 0 else { return nil }
    var buffer = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
    guard if_indextoname(UInt32(bitPattern: index), &buffer) != nil else { return nil }
    return String(cBuffer: buffer)
  }

  private static func bytes(at address: UnsafeMutablePointer<sockaddr>) -> [UInt8]? {
    let raw = UnsafeRawPointer(address)
    switch CInt(address.pointee.sa_family) {
    case AF_INET:
      return withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in.self).sin_addr) { Array($0) }
    case AF_INET6:
      return withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { Array($0) }
    default: return nil
    }
  }
}
