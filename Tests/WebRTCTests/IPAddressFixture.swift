import Platform

/// Addresses for documentation (RFC 5737, RFC 3849).
enum IPAddressFixture {
  static let v4 = IPAddress("192.0.2.7").unsafelyUnwrapped
  static let v6 = IPAddress("2001:db8::7").unsafelyUnwrapped
}
