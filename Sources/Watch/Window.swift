import CSDL
import Decoding
import Media
import Platform
import Synchronization

/// A window with the newest picture. A thread of its own opens it, draws and takes its events.
///
/// A picture is shown as soon as it is decoded. One that comes while another is drawn waits, and a newer one replaces it.
final class Window: Sendable {
  private struct State {
    var newest: DecodedPicture?
    var hasEnded = false
  }

  private let state = Mutex(State())
  private let drawn = Atomic<UInt64>(0)
  private let title: String
  private let close: @Sendable () -> Void
  private let closed = OneAnswer<Void>()

  /// The time for which the thread waits for events at most, in milliseconds.
  private static let patience: CInt = 100
  /// The window's size before the first picture.
  private static let size = PictureSize(width: 1280, height: 720)

  /// Opens a window for a stream. `close` is called when the user closes it.
  ///
  /// - Throws: `WatchError.display`, where there is no display.
  init(title: String, close: @escaping @Sendable () -> Void) async throws {
    (self.title, self.close) = (title, close)
    let opened = OneAnswer<Void>()
    do throws(SystemFailure) {
      try NamedThread("nj-window") { [self] in
        run(opened)
        closed.give(.success(()))
      }.detach()
    } catch {
      throw WatchError.display("\(error)")
    }
    try await withCheckedThrowingContinuation { opened.wait($0) }
  }

  /// The number of pictures that were drawn.
  var pictures: UInt64 { drawn.load(ordering: .relaxed) }

  /// Shows a picture in place of the present one.
  func show(_ picture: DecodedPicture) {
    state.withLock { $0.newest = picture }
    nightjar_sdl_wake()
  }

  /// Closes the window, and waits until it is closed. Called once.
  func end() async {
    state.withLock { $0.hasEnded = true }
    nightjar_sdl_wake()
    try? await withCheckedThrowingContinuation { closed.wait($0) }
  }

  // MARK: The window's thread

  private func run(_ opened: OneAnswer<Void>) {
    guard SDL_InitSubSystem(nightjar_sdl_video) == 0 else {
      opened.give(.failure(WatchError.display(SDL.reason)))
      return
    }
    defer { SDL_QuitSubSystem(nightjar_sdl_video) }
    guard let surface = Surface(title: title, Self.size) else {
      opened.give(.failure(WatchError.display(SDL.reason)))
      return
    }
    opened.give(.success(()))
    while !state.withLock({ $0.hasEnded }) {
      let event = nightjar_sdl_wait(Self.patience)
      if event == 1 {
        close()
        // The picture stays until the reception has ended.
        continue
      }
      let next = state.withLock { state in
        defer { state.newest = nil }
        return state.newest
      }
      if let next, surface.update(next) {
        surface.draw()
        drawn.wrappingAdd(1, ordering: .relaxed)
      } else if event == 2 {
        surface.draw()
      }
    }
  }
}

/// The window itself, with the memory of its picture. One thread uses it.
private final class Surface {
  private let window: OpaquePointer
  private let renderer: OpaquePointer
  private var texture: OpaquePointer?
  private var size: PictureSize

  /// Opens a window; nil where that fails.
  init?(title: String, _ size: PictureSize) {
    guard
      let window = SDL_CreateWindow(
        title, nightjar_sdl_anywhere, nightjar_sdl_anywhere, CInt(size.width), CInt(size.height), nightjar_sdl_resizable
      )
    else { return nil }
    // Without waiting for the screen's next picture, which would delay this one.
    guard let renderer = SDL_CreateRenderer(window, -1, 0) else {
      SDL_DestroyWindow(window)
      return nil
    }
    (self.window, self.renderer, self.size) = (window, renderer, size)
    draw()
  }

  deinit {
    if let texture { SDL_DestroyTexture(texture) }
    SDL_DestroyRenderer(renderer)
    SDL_DestroyWindow(window)
  }

  /// Takes a picture; `false` where there is no memory for it.
  func update(_ picture: DecodedPicture) -> Bool {
    let planes = picture.frame.planes
    if texture == nil || size != planes.size {
      if let texture { SDL_DestroyTexture(texture) }
      texture = SDL_CreateTexture(
        renderer, nightjar_sdl_nv12, nightjar_sdl_streaming, CInt(planes.size.width), CInt(planes.size.height))
      if size != planes.size {
        SDL_SetWindowSize(window, CInt(planes.size.width), CInt(planes.size.height))
        SDL_SetWindowPosition(window, nightjar_sdl_centred, nightjar_sdl_centred)
      }
      size = planes.size
      // The picture keeps its shape in any window.
      SDL_RenderSetLogicalSize(renderer, CInt(planes.size.width), CInt(planes.size.height))
    }
    guard let texture else { return false }
    // SDL 2 knows the full range of BT.601 alone.
    let mode =
      picture.color.isFullRange
      ? SDL_YUV_CONVERSION_JPEG : picture.color.matrix == 1 ? SDL_YUV_CONVERSION_BT709 : SDL_YUV_CONVERSION_BT601
    SDL_SetYUVConversionMode(mode)
    return SDL_UpdateNVTexture(
      texture, nil, planes.luma, CInt(planes.lumaStride), planes.chroma, CInt(planes.chromaStride)) == 0
  }

  func draw() {
    SDL_SetRenderDrawColor(renderer, 0, 0, 0, 255)
    SDL_RenderClear(renderer)
    if let texture { SDL_RenderCopy(renderer, texture, nil, nil) }
    SDL_RenderPresent(renderer)
  }
}

/// SDL as a whole.
enum SDL {
  /// The reason for the last failure, in SDL's words.
  static var reason: String { SDL_GetError().map { String(cString: $0) } ?? "unknown" }

  /// Prepares SDL for a program with its own main function and its own signals.
  static func prepare() {
    SDL_SetMainReady()
    SDL_SetHint("SDL_NO_SIGNAL_HANDLERS", "1")
  }
}
