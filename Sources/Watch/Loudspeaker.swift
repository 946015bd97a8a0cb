import CSDL
import Decoding
import Platform
import Synchronization

/// The sound device. Sound is played as soon as it comes, behind a short buffer that takes the network's jitter.
///
/// Where the buffer runs empty, it is filled with silence once more. Where it is too full, a packet is left out: so sound is never late
/// for good, however the clocks of sender and device differ.
final class Loudspeaker: Sendable {
  /// The samples of each channel, and what became of them.
  struct Figures: Equatable {
    /// The samples that were given to the device.
    var played: UInt64 = 0
    /// The samples that were left out because the buffer was too full.
    var leftOut: UInt64 = 0
    /// The times that the buffer ran empty.
    var gaps: UInt64 = 0
  }

  /// The channels of the device.
  static let channels = 2
  /// The samples a second.
  private static let rate = 48_000
  /// The silence before the first sound: 60 ms, three packets.
  private static let reserve = 2880
  /// The samples of each channel in the buffer beyond which packets are left out: 200 ms.
  private static let limit = 9600

  private let device: SDL_AudioDeviceID
  private let figures = Mutex(Figures())

  /// Opens the default device.
  ///
  /// - Throws: `WatchError.soundDevice`.
  init() throws(WatchError) {
    guard SDL_InitSubSystem(nightjar_sdl_audio) == 0 else { throw .soundDevice(SDL.reason) }
    var wanted = SDL_AudioSpec()
    (wanted.freq, wanted.format) = (CInt(Self.rate), nightjar_sdl_samples)
    (wanted.channels, wanted.samples) = (UInt8(Self.channels), 512)
    // SDL converts what the device does not take.
    device = SDL_OpenAudioDevice(nil, 0, &wanted, nil, 0)
    guard device != 0 else {
      let reason = SDL.reason
      SDL_QuitSubSystem(nightjar_sdl_audio)
      throw .soundDevice(reason)
    }
    SDL_PauseAudioDevice(device, 0)
  }

  deinit {
    SDL_CloseAudioDevice(device)
    SDL_QuitSubSystem(nightjar_sdl_audio)
  }

  /// The figures so far.
  var played: Figures { figures.withLock { $0 } }

  /// Plays sound behind what waits already.
  func play(_ sound: DecodedSound) {
    let frameBytes = Self.channels * MemoryLayout<Int16>.size
    figures.withLock { figures in
      let waiting = Int(SDL_GetQueuedAudioSize(device)) / frameBytes
      guard waiting + sound.length <= Self.limit else {
        figures.leftOut &+= UInt64(sound.length)
        return
      }
      if waiting == 0 {
        if figures.played > 0 { figures.gaps &+= 1 }
        let silence = [Int16](repeating: 0, count: Self.reserve * Self.channels)
        SDL_QueueAudio(device, silence, UInt32(silence.count * MemoryLayout<Int16>.size))
      }
      SDL_QueueAudio(device, sound.samples, UInt32(sound.samples.count * MemoryLayout<Int16>.size))
      figures.played &+= UInt64(sound.length)
    }
  }
}
