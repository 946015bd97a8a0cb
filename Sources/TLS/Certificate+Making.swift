import COpenSSL
import Glibc

extension Certificate {
  /// The contents of a certificate.
  package struct Contents: Sendable {
    /// The common name of the subject, truncated to the 64 bytes that X.520 allows.
    package var commonName: String
    /// The DNS names of the subject.
    package var names: [String]
    /// The subject's addresses in network byte order, of 4 or 16 bytes.
    package var addresses: [[UInt8]]
    /// The validity period, in seconds of Unix time.
    package var validity: ClosedRange<Int64>

    /// Creates contents; see the properties.
    package init(commonName: String, names: [String], addresses: [[UInt8]], validity: ClosedRange<Int64>) {
      (self.commonName, self.names, self.addresses) = (commonName, names, addresses)
      self.validity = validity
    }
  }

  /// The authority that signs a certificate.
  package struct Issuer: Sendable {
    let certificate: Certificate
    let key: PrivateKey

    /// Creates an issuer of an authority's certificate and its key.
    package init(_ certificate: Certificate, key: PrivateKey) { (self.certificate, self.key) = (certificate, key) }
  }

  /// Returns a server certificate for `key`, RFC 5280, with SHA-256.
  ///
  /// - Parameter issuer: who signs it; nil for `key` itself.
  /// - Throws: ``OpenSSLError``.
  package static func server(
    _ contents: Contents, key: PrivateKey, issuer: Issuer? = nil
  ) throws(OpenSSLError) -> Certificate {
    var extensions = [
      (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
      (NID_ext_key_usage, "serverAuth"), (NID_subject_key_identifier, "hash"),
    ]
    if issuer != nil { extensions.append((NID_authority_key_identifier, "keyid:always")) }
    return try make(contents, extensions, key: key, issuer: issuer)
  }

  /// Returns the certificate of an authority that signs for servers of these names and networks alone (section
  /// 4.2.1.10), and for no further authority.
  ///
  /// - Parameter networks: addresses with their masks, as in `10.0.0.0/255.0.0.0`.
  /// - Throws: ``OpenSSLError``.
  package static func authority(
    _ commonName: String, names: [String], networks: [String], validity: ClosedRange<Int64>, key: PrivateKey
  ) throws(OpenSSLError) -> Certificate {
    let permitted = names.map { "permitted;DNS:\($0)" } + networks.map { "permitted;IP:\($0)" }
    return try make(
      Contents(commonName: commonName, names: [], addresses: [], validity: validity),
      [
        (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"), (NID_key_usage, "critical,keyCertSign,cRLSign"),
        (NID_subject_key_identifier, "hash"),
        (NID_name_constraints, (["critical"] + permitted).joined(separator: ",")),
      ], key: key, issuer: nil)
  }

  private static func make(
    _ contents: Contents, _ extensions: [(CInt, String)], key: PrivateKey, issuer: Issuer?
  ) throws(OpenSSLError) -> Certificate {
    ERR_clear_error()
    guard let pointer = X509_new() else { throw OpenSSLError("making a certificate") }
    let certificate = Certificate(owning: pointer)
    let commonName = Array(contents.commonName.utf8.prefix(64))
    // Section 4.1.2.2: positive, and at most 20 bytes.
    var serial = Secrets.randomBytes(20)
    serial[0] = serial[0] & 0x7F | 0x40
    let subject = X509_get_subject_name(pointer)
    try check(X509_set_version(pointer, 2) == 1)
    try check(set(serial, of: X509_get_serialNumber(pointer)))
    try check(
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, commonName, CInt(commonName.count), -1, 0) == 1)
    let signing = issuer?.certificate.pointer ?? pointer
    try check(X509_set_issuer_name(pointer, X509_get_subject_name(signing)) == 1)
    try check(ASN1_TIME_set(X509_getm_notBefore(pointer), time_t(contents.validity.lowerBound)) != nil)
    try check(ASN1_TIME_set(X509_getm_notAfter(pointer), time_t(contents.validity.upperBound)) != nil)
    try check(X509_set_pubkey(pointer, key.pointer) == 1)
    for (kind, value) in extensions {
      var context = nightjar_extension_context(signing, pointer)
      let `extension` = X509V3_EXT_conf_nid(nil, &context, kind, value)
      defer { X509_EXTENSION_free(`extension`) }
      try check(`extension` != nil && X509_add_ext(pointer, `extension`, -1) == 1)
    }
    try add(alternativeNames(of: contents), to: pointer)
    try check(X509_sign(pointer, (issuer?.key ?? key).pointer, EVP_sha256()) > 0)
    return certificate
  }

  private static func check(_ isDone: Bool) throws(OpenSSLError) {
    guard isDone else { throw OpenSSLError("making a certificate") }
  }

  private static func set(_ bytes: [UInt8], of integer: UnsafeMutablePointer<ASN1_INTEGER>?) -> Bool {
    guard let number = BN_bin2bn(bytes, CInt(bytes.count), nil) else { return false }
    defer { BN_free(number) }
    return BN_to_ASN1_INTEGER(number, integer) != nil
  }

  /// Returns the subject's names and addresses, section 4.2.1.6.
  private static func alternativeNames(of contents: Contents) -> [(kind: CInt, bytes: [UInt8])] {
    contents.names.map { (GEN_DNS, Array($0.utf8)) } + contents.addresses.map { (GEN_IPADD, $0) }
  }

  private static func add(_ names: [(kind: CInt, bytes: [UInt8])], to certificate: OpaquePointer) throws(OpenSSLError) {
    guard !names.isEmpty else { return }
    guard let list = GENERAL_NAMES_new() else { throw OpenSSLError("making a certificate") }
    defer { GENERAL_NAMES_free(list) }
    for (kind, bytes) in names {
      let text = kind == GEN_DNS ? ASN1_IA5STRING_new() : ASN1_OCTET_STRING_new()
      let name = GENERAL_NAME_new()
      // After the push, the list frees the name, and the name frees the text.
      try check(text != nil && name != nil && ASN1_STRING_set(text, bytes, CInt(bytes.count)) == 1)
      GENERAL_NAME_set0_value(name, kind, text)
      try check(nightjar_general_names_push(list, name) > 0)
    }
    try check(X509_add1_ext_i2d(certificate, NID_subject_alt_name, UnsafeMutableRawPointer(list), 0, 0) == 1)
  }
}
