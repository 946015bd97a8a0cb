import Glibc
import Host
import Platform
import Serving

/// The examination of an appliance's servers.
extension Doctor {
  func examineServers(_ configuration: ApplianceConfiguration) {
    looking(at: "servers")
    let (serving, api, http) = (configuration.rtsp, configuration.api, configuration.http.http)
    let isEncrypted = serving.rtsps != nil || api.https != nil
    let ownCertificate = isEncrypted && serving.certificate == nil
    tell(MachineFindings.state(directory: StandardPaths.stateDirectory, isNeeded: ownCertificate))
    guard serving.isServed || api.https != nil || http != nil else { return }
    // If their file cannot be read, a finding has said so already.
    let hasUsers = examineUsers(serving) ?? true
    let hasTokens = api.https != nil && examineTokens(api)
    if isEncrypted { examineCertificate(serving) }
    let adding = Self.addingUser(serving)
    examinePorts(
      [("rtsp", serving.rtsp, RTSPSettings.port), ("rtsps", serving.rtsps, RTSPSettings.encryptedPort)],
      isOpen: hasUsers,
      adding: adding)
    examinePorts([("https", api.https, APISettings.port)], isOpen: hasUsers || hasTokens, adding: adding)
    examineBrowserPort(configuration, isOpen: hasUsers || hasTokens)
    // Unlike the encrypted servers, this one is open to other hosts only if an address was given.
    examinePorts([("http", http, HTTPSettings.port)], isOpen: hasUsers && http?.address != nil, adding: adding)
    if configuration.announces { examineAnnouncements(hasUsers: hasUsers, adding: adding) }
  }

  /// Examines the announcements on the network.
  private func examineAnnouncements(hasUsers: Bool, adding: Mend) {
    let starting = Mend.asRoot(DiscoveryError.start)
    if let announcements = running?.status.announcements, !announcements.isEmpty {
      for service in announcements {
        let what = "'\(TerminalText.escaped(service.name))' (\(service.type), port \(service.port))"
        tell(
          service.state == .announced
            ? Finding(.announcement, what)
            : Finding(
              .announcementWaiting, "\(what) is not announced: \(service.reason ?? service.state.rawValue)",
              mends: service.state == .refused ? [.asRoot("journalctl -u avahi-daemon")] : [starting]))
      }
      return
    }
    guard hasUsers else {
      return tell(
        Finding(
          .announcementWaiting, "only this host may watch: there is nothing to announce",
          mends: [adding]))
    }
    do throws(DiscoveryError) {
      let host = try AvahiDaemon.hostName()
      tell(Finding(.announcement, "Avahi runs, and calls this host \(TerminalText.escaped(host))"))
    } catch {
      var mends = [starting, .advice("if it is not installed: the package avahi-daemon")]
      // A system without a bus has no Avahi either.
      if case .noBus = error {
        mends = [.asRoot(DiscoveryError.install), .asRoot("systemctl start dbus avahi-daemon")]
      }
      tell(Finding(.announcementWaiting, "\(error.reason): nightjar can announce nothing", mends: mends))
    }
  }

  private static func addingUser(_ serving: RTSPSettings) -> Mend {
    guard serving.users == nil, ServiceAccount.isBesideRoot else {
      return .command("nightjar user add NAME" + option("users", serving.users))
    }
    return .command("sudo -u \(ServiceAccount.name) nightjar user add NAME && sudo systemctl reload nightjar")
  }

  /// Returns `true` if there are users; `nil` if that is unknown.
  private func examineUsers(_ serving: RTSPSettings) -> Bool? {
    let path = serving.users ?? StandardPaths.usersFile
    let adding = Self.addingUser(serving)
    do {
      guard let file = try serving.usersFile() else {
        if serving.users == nil, ServiceAccount.isBesideRoot, ServiceAccount.hasUsers == true {
          tell(Finding(.users, "root has none, but the service has: sudo -u \(ServiceAccount.name) nightjar user list"))
          return true
        }
        tell(Finding(.users, "none: only this host may watch"))
        return false
      }
      tell(Finding(.users, "\(file.users.count) in \(path)", figures: ["users": Double(file.users.count)]))
      return true
    } catch UsersFileError.file(.missing) {
      tell(Finding(.usersFile, "there is no users file \(path)", mends: [adding]))
      return nil
    } catch UsersFileError.file(let error) {
      tell(Finding(.usersFile, "\(error)", mends: error.mends(again: again)))
      return nil
    } catch let failure as ApplianceFailure {
      tell(Finding(.usersFile, failure.description, mends: [adding]))
    } catch {
      tell(Finding(.usersFile, "\(error)", mends: [.advice("mend that line in \(path)")]))
      return nil
    }
    return false
  }

  /// Returns `true` if there are tokens.
  private func examineTokens(_ api: APISettings) -> Bool {
    let path = api.tokens ?? StandardPaths.tokensFile
    do {
      guard let file = try api.tokensFile() else { return false }
      tell(Finding(.tokens, "\(file.names.count) in \(path)", figures: ["tokens": Double(file.names.count)]))
      return !file.names.isEmpty
    } catch TokensFileError.file(.missing) {
      tell(
        Finding(
          .tokensFile, "there is no tokens file \(path)",
          mends: [.command("nightjar token add NAME" + Self.option("tokens", api.tokens))]))
    } catch TokensFileError.file(let error) {
      tell(Finding(.tokensFile, "\(error)", mends: error.mends(again: again)))
    } catch {
      tell(Finding(.tokensFile, "\(error)", mends: [.advice("mend that line in \(path)")]))
    }
    return false
  }

  private func examineCertificate(_ serving: RTSPSettings) {
    let own = "\(StandardPaths.stateDirectory)/\(SelfSignedIdentity.fileName)"
    let (certificate, key) = (serving.certificate ?? own, serving.key ?? own)
    do throws(TLSIdentityError) {
      let identity = try TLSIdentity(certificateFile: certificate, keyFile: key)
      tell(finding(of: identity, at: certificate, isOwn: serving.certificate == nil))
    } catch .file(.missing) where serving.certificate == nil {
      tell(Finding(.certificate, "nightjar makes its own at the first start: \(own)"))
    } catch .file(let error) {
      tell(Finding(.certificateFile, "\(error)", mends: error.mends(again: again)))
    } catch {
      tell(
        Finding(
          .certificateFile, error.description,
          mends: serving.certificate == nil
            ? [.command("rm \(ShellWord.quoted(own))"), .advice("nightjar makes another at the next start")]
            : [.command("openssl x509 -noout -subject -dates -in \(ShellWord.quoted(certificate))")]))
    }
  }

  private func finding(of identity: TLSIdentity, at path: String, isOwn: Bool) -> Finding {
    let now = Int64(time(nil))
    let days = Double(identity.notAfter - now) / 86_400
    let figures = ["days_left": days.rounded(.down)]
    let renewing: [Mend] =
      isOwn
      ? [.asRoot("systemctl restart nightjar"), .advice("nightjar makes another at the next start")]
      : [.advice("renew it at its issuer; then: \(controlCommand("reload"))")]
    switch identity.validity(at: now) {
    case .expired(let end):
      return Finding(
        .certificateExpired, "\(path) has expired on \(ClockCondition.day(end))", mends: renewing, figures: figures)
    case .notYet(let start):
      return Finding(
        .certificateEarly,
        "\(path) is valid from \(ClockCondition.day(start)) on, and the clock says "
          + ClockCondition.day(now), mends: [.asRoot("timedatectl set-ntp true")], figures: figures)
    case .valid:
      let text =
        "\(path): valid until \(ClockCondition.day(identity.notAfter)), SHA-256 \(identity.fingerprint.prefix(23))…"
      return days < 30
        ? Finding(.certificateSoon, text, mends: renewing, figures: figures)
        : Finding(.certificate, text, figures: figures)
    }
  }

  /// Examines the port at which browsers get picture and sound, for UDP and TCP.
  private func examineBrowserPort(_ configuration: ApplianceConfiguration, isOpen: Bool) {
    let port = Int(configuration.webrtc.port)
    guard port != 0, let https = configuration.api.https,
      let listeners = https.listeners(port: APISettings.port, isEncrypted: true, isOpenToOthers: isOpen)
    else { return }
    let addresses = listeners.allSatisfy(\.isLoopback) ? ["127.0.0.1", "::1"] : ["0.0.0.0", "::"]
    for transport in [PortCheck.Transport.udp, .tcp] {
      for (index, address) in addresses.enumerated() {
        let check = PortCheck(address: address, port: port, transport: transport)
        // A host without IPv6 does without it.
        let finding = check.finding(
          service: ApplianceSetting.webrtcPort.rawValue, own: running?.process, isOptional: index > 0,
          isPortAlone: true,
          isUnseenOwn: listeners.contains { running?.listens(at: $0.address, port: $0.port) == true })
        if let finding { tell(finding) }
      }
    }
  }

  private func examinePorts(
    _ servers: [(name: String, given: ListenAddress?, port: Int)], isOpen: Bool, adding: Mend
  ) {
    for server in servers {
      guard let given = server.given else { continue }
      guard let listeners = given.listeners(port: server.port, isEncrypted: false, isOpenToOthers: isOpen) else {
        tell(
          Finding(
            .usersNeeded, "\(server.name) at \(given): it is open to other hosts, but nobody can log in",
            mends: [
              adding,
              .advice("or only this host: \(server.name) = \"127.0.0.1:\(given.port ?? server.port)\""),
            ]))
        continue
      }
      for listener in listeners {
        // The running stream tells its listeners even if the descriptors of its process cannot be seen.
        if let running, running.listens(at: listener.address, port: listener.port) {
          tell(Finding(.port, "\(server.name) at \(listener.address) port \(listener.port): the running stream's"))
          continue
        }
        let check = PortCheck(address: listener.address, port: listener.port)
        let finding = check.finding(service: server.name, own: running?.process, isOptional: listener.isOptional)
        if let finding { tell(finding) }
      }
    }
  }
}

extension PrivateFileError {
  /// Returns the remedies.
  ///
  /// - Parameter again: the remedy that repeats the examination as root.
  func mends(again: Mend) -> [Mend] {
    switch self {
    case .exposed(let path, _): [.command("chmod o= \(ShellWord.quoted(path))")]
    case .foreign(_, let owner) where ServiceAccount.isService(owner): [.command("systemctl status nightjar")]
    case .foreign(let path, _): [.asRoot("chown \(geteuid()) \(ShellWord.quoted(path))")]
    case .system(_, let path, let number) where number == EACCES || number == EPERM:
      [.command("ls -l \(ShellWord.quoted(path))"), again]
    case .missing(let path), .notAFile(let path), .tooLarge(let path, _), .locked(let path), .system(_, let path, _):
      [.command("ls -ld \(ShellWord.quoted(path))")]
    }
  }
}
