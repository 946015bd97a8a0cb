import Adaptors
import Decoding
import Foundation
import Platform
import Receiving
import TestSupport
import Testing

/// The pictures and the sound that were decoded of a stream.
struct StreamOutcome {
  var pictures = 0
  var sound: [DecodedSound] = []
  var errors: [String] = []
  /// The number of the first errors that came before any picture.
  var early = 0
  /// The number of damaged pictures among them.
  var earlyDamage = 0
  /// The reason why the receiver has ended; nil if it has none.
  var failure: ReceiverError?
  var statistics = StreamReceiver.Statistics()

  /// The least amplitude of a tone.
  private static let loudness = 3000
  /// The packets with a tone that suffice to tell its frequency: a beep of this program has six.
  private static let loudPackets = 5

  /// Returns the settings of a receiver that gives a busy host its time, and does not connect again.
  static func configuration(_ transport: StreamReceiver.Transport) -> StreamReceiver.Configuration {
    .init(transport: transport, answerTimeout: .seconds(60), silenceTimeout: .seconds(60), reconnects: false)
  }

  /// Receives and decodes until `count` pictures have come and `seconds` of sound with a tone, or for a minute. A busy host may lose
  /// the packets of one beep.
  static func of(
    _ source: StreamReceiver.Source, _ configuration: StreamReceiver.Configuration, pictures count: Int,
    seconds: Double = 0
  ) async throws -> StreamOutcome {
    let receiver = try StreamReceiver(source, configuration: configuration)
    let end = Task {
      try? await Task.sleep(for: .seconds(60))
      receiver.stop()
    }
    defer { end.cancel() }
    let packets = receiver.soundPackets(.newest(512))
    let listening = Task { () -> (sound: [DecodedSound], errors: [String]) in
      let decoder = try SoundDecoder(configuration: .init(channels: 1))
      var (sound, errors): ([DecodedSound], [String]) = ([], [])
      var (samples, loud) = (0, 0)
      for await packet in packets {
        do throws(SoundDecoderError) {
          let decoded = try decoder.decode(packet)
          sound += decoded
          samples += decoded.reduce(0) { $0 + $1.length }
          loud += decoded.count { !$0.isConcealed && $0.samples.contains { abs(Int($0)) > loudness } }
        } catch {
          errors.append("\(error)")
        }
        if Double(samples) >= seconds * 48_000, loud >= loudPackets { break }
      }
      return (sound, errors)
    }
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software))
    var outcome = StreamOutcome()
    let units = receiver.accessUnits(.newest(512))
    try receiver.start()
    for await unit in units {
      do throws(DecoderError) {
        outcome.pictures += try decoder.decode(unit).count
      } catch {
        outcome.errors.append("\(error)")
        if outcome.pictures == 0 {
          outcome.early += 1
          if case .damaged = error { outcome.earlyDamage += 1 }
        }
      }
      outcome.statistics = receiver.statistics
      guard outcome.pictures >= count else { continue }
      if seconds > 0 {
        let heard = try await listening.value
        (outcome.sound, outcome.errors) = (heard.sound, outcome.errors + heard.errors)
        outcome.statistics = receiver.statistics
      }
      receiver.stop()
    }
    receiver.stop()
    listening.cancel()
    if let failure = receiver.statistics.lastFailure, failure != .stopped {
      outcome.failure = failure
      outcome.errors.append("\(failure)")
    }
    return outcome
  }

  /// The frequency of the tone in the sound in Hz, by its zero crossings where it is loud; nil where there is no tone.
  var frequency: Double? {
    let samples = sound.flatMap(\.samples)
    func isLoud(_ samples: ArraySlice<Int16>) -> Bool { samples.contains { abs(Int($0)) > Self.loudness } }
    // Of 10 ms each, and loud at both ends.
    let windows = stride(from: 0, to: samples.count - 480, by: 480).map { samples[$0..<$0 + 480] }
      .filter { isLoud($0.prefix(48)) && isLoud($0.suffix(48)) }
    guard windows.count >= 5 else { return nil }
    let crossings = windows.map { window in zip(window, window.dropFirst()).count { $0 < 0 && $1 >= 0 } }
    return Double(crossings.reduce(0, +)) * 100 / Double(windows.count)
  }
}

/// A key and a certificate for a test's server, as openssl makes them.
struct TestCertificate {
  let (key, certificate): (String, String)
  /// The SHA-256 of the certificate's DER.
  let fingerprint: [UInt8]

  init(in directory: TemporaryDirectory) throws {
    (key, certificate) = (directory.path("key.pem"), directory.path("certificate.pem"))
    let made = try Subprocess.run(
      [
        "sh", "-c",
        #"umask 77; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=camera "#
          + #"-keyout "$0" -out "$1" && openssl x509 -in "$1" -outform der | sha256sum"#, key, certificate,
      ], in: directory)
    let digits = Array(made.outputText.prefix(64))
    try #require(digits.count == 64, "\(made.error)")
    fingerprint = try stride(from: 0, to: 64, by: 2).map { try #require(UInt8(String(digits[$0..<$0 + 2]), radix: 16)) }
  }
}
