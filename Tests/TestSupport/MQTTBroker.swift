package import Foundation
import Platform

/// An MQTT broker that is not ours: Debian's mosquitto.
package final class MQTTBroker {
  /// Its port at 127.0.0.1.
  package let port: Int
  /// The folder of its files.
  package let directory: TemporaryDirectory
  private let lines: [String]
  private var process: Subprocess

  private static let program = "/usr/sbin/mosquitto"

  /// Starts a broker with these lines of its configuration, beside the port; without any, everybody may do everything.
  package init(_ lines: [String] = ["allow_anonymous true"], in directory: TemporaryDirectory? = nil) throws {
    self.directory = try directory ?? TemporaryDirectory()
    self.lines = lines
    port = try TCPPort.free()
    process = try Self.start(port, lines, in: self.directory)
  }

  deinit { process.send(SIGKILL) }

  private static func start(_ port: Int, _ lines: [String], in directory: TemporaryDirectory) throws -> Subprocess {
    // As root it would become another user, who cannot read the test's files.
    let text = (["listener \(port) 127.0.0.1", "user root", "log_type all"] + lines).joined(separator: "\n") + "\n"
    let file = try directory.write(text.utf8, as: "mosquitto.conf")
    let process = try Subprocess([program, "-c", file], in: directory)
    guard eventually(within: 60, { process.errorSoFar.contains(" running") }) else {
      throw SystemFailure("mosquitto: \(process.errorSoFar)", errorNumber: ETIMEDOUT)
    }
    return process
  }

  /// The log since its last start.
  package var log: String { process.errorSoFar }

  /// The names of the clients that have connected since its last start, in order.
  package var clients: [String] {
    // As in "1732151002: New client connected from 127.0.0.1:50306 as doctor8d1c (p5, c1, k60)."
    log.matches(of: /New client connected from [^ ]+ as ([^ ]+) \(/).map { String($0.output.1) }
  }

  /// Ends it, by a signal of the test's choice.
  package func stop(_ signal: Int32 = SIGTERM) throws {
    process.send(signal)
    _ = try process.wait(limit: 60)
  }

  /// Starts it again. It has forgotten everything.
  package func start() throws { process = try Self.start(port, lines, in: directory) }

  /// Lets its threads stand still, or go on: connections stay, and nothing is answered.
  package func freeze(_ isFrozen: Bool) { process.send(isFrozen ? SIGSTOP : SIGCONT) }

  /// The options of mosquitto's clients for this broker.
  package var client: [String] { ["-h", "127.0.0.1", "-p", "\(port)"] }

  /// Publishes by mosquitto_pub.
  package func publish(_ topic: String, _ text: String?, isRetained: Bool = false, options: [String] = []) throws {
    try publish(topic, text.map { ["-m", $0] } ?? ["-n"], isRetained, options)
  }

  /// Publishes the content of a file by mosquitto_pub.
  package func publish(_ topic: String, contentsOf file: String) throws { try publish(topic, ["-f", file], false, []) }

  private func publish(_ topic: String, _ payload: [String], _ isRetained: Bool, _ options: [String]) throws {
    let result = try Subprocess.run(
      ["mosquitto_pub"] + client + ["-q", "1", "-t", topic] + payload + (isRetained ? ["-r"] : []) + options,
      in: directory)
    guard result.status == 0 else { throw SystemFailure("mosquitto_pub: \(result.error)", errorNumber: EIO) }
  }

  /// Returns the retained messages that a new client gets.
  package func retained(_ filter: String = "#", options: [String] = []) throws -> [String: String] {
    // The retained ones come at once; a message after them says that there are no more.
    let end = "end/\(UUID().uuidString)"
    let listener = try MQTTListener(self, filter, options: ["-t", end] + options)
    try publish(end, "end", options: options)
    guard eventually(within: 60, { listener.messages.contains { $0.topic == end } }) else {
      throw SystemFailure("mosquitto_sub did not get all", errorNumber: ETIMEDOUT)
    }
    return Dictionary(listener.messages.filter(\.isRetained).map { ($0.topic, $0.text) }) { $1 }
  }
}

/// A client of a broker that is not ours: Debian's mosquitto_sub, which notes all messages of some topics.
package final class MQTTListener {
  /// A message.
  package struct Message: Hashable, Sendable {
    /// The time of arrival in seconds since 1970, and the topic.
    package let time: Double
    package let topic: String
    /// The payload.
    package let payload: Data
    /// `true` for one that the broker had before.
    package let isRetained: Bool
    package let qos: Int

    /// The payload as text.
    package var text: String { String(decoding: payload, as: UTF8.self) }
  }

  /// The time, whether it was retained, the quality of service, the topic, and the payload in hexadecimal digits.
  static let format = "%U %r %q %t %x"

  private let process: Subprocess
  private let directory: TemporaryDirectory

  /// Begins to listen, and waits until the broker says that it does.
  package init(_ broker: MQTTBroker, _ filter: String = "#", options: [String] = []) throws {
    directory = try TemporaryDirectory()
    process = try Subprocess(
      ["stdbuf", "-oL", "mosquitto_sub", "-d"] + broker.client + ["-q", "1", "-t", filter, "-F", Self.format] + options,
      in: directory)
    let process = process
    guard eventually(within: 60, { process.outputSoFar.contains("Subscribed (mid") }) else {
      throw SystemFailure("mosquitto_sub: \(process.outputSoFar) \(process.errorSoFar)", errorNumber: ETIMEDOUT)
    }
  }

  deinit { process.send(SIGKILL) }

  /// The messages so far, in order.
  package var messages: [Message] { Self.messages(of: process.outputSoFar) }

  /// The texts of a topic so far, in order.
  package func texts(_ topic: String) -> [String] { messages.filter { $0.topic == topic }.map(\.text) }

  static func messages(of text: String) -> [Message] {
    // The last line may not be whole yet.
    let lines = text.lastIndex(of: "\n").map { text[...$0] } ?? ""
    return lines.split(separator: "\n").compactMap { line in
      // What -d writes has other words.
      let words = line.split(separator: " ", omittingEmptySubsequences: false)
      guard words.count == 5, let time = Double(words[0]), let qos = Int(words[2]) else { return nil }
      let digits = Array(words[4].utf8)
      let bytes = stride(from: 0, to: digits.count - digits.count % 2, by: 2).compactMap { index in
        UInt8(String(decoding: digits[index..<index + 2], as: UTF8.self), radix: 16)
      }
      return Message(
        time: time, topic: String(words[3]), payload: Data(bytes), isRetained: words[1] == "1", qos: qos)
    }
  }
}
