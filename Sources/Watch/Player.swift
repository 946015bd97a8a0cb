import Adaptors
import Decoding
import Platform

/// The window and the sound device of `--play`.
final class Player: Sendable {
  private let window: Window
  /// The sound device; nil where none opens, or none is wanted.
  private let loudspeaker: Loudspeaker?
  private let sound: SoundDecoder?

  /// Opens a window and the sound device. `close` is called when the user closes the window. Without a sound device, the picture is
  /// shown all the same.
  ///
  /// - Throws: `WatchError.display`; `SoundDecoderError`.
  init(title: String, playsSound: Bool, close: @escaping @Sendable () -> Void) async throws {
    SDL.prepare()
    window = try await Window(title: title, close: close)
    guard playsSound else {
      (loudspeaker, sound) = (nil, nil)
      return
    }
    do throws(WatchError) {
      loudspeaker = try Loudspeaker()
    } catch {
      StandardError.write("silent     \(error)")
      loudspeaker = nil
    }
    sound = loudspeaker == nil ? nil : try SoundDecoder(configuration: .init(channels: Loudspeaker.channels))
  }

  /// Shows a picture.
  func show(_ picture: DecodedPicture) { window.show(picture) }

  /// Plays packets of sound until there are no more.
  func play(_ packets: AsyncStream<EncodedSound>) async {
    guard let sound, let loudspeaker else { return }
    for await packet in packets {
      // The decoder counts what it refuses, and the next packet fills the gap.
      for part in (try? sound.decode(packet)) ?? [] { loudspeaker.play(part) }
    }
  }

  /// The lines for the end.
  var summaries: [String] {
    var lines = ["window     \(window.pictures) pictures drawn"]
    if let loudspeaker, let sound {
      let (played, filled) = (loudspeaker.played, sound.counts.samplesConcealed)
      func seconds(_ samples: UInt64) -> String { decimal(Double(samples) / 48_000, 2) + " s" }
      lines.append(
        "played     \(seconds(played.played)) of sound, \(seconds(filled)) of it filled; \(seconds(played.leftOut)) left out, "
          + "\(played.gaps) gaps")
    }
    return lines
  }

  /// Closes the window. Called once.
  func end() async { await window.end() }
}
