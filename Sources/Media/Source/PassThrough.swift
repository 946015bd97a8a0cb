package import Platform
import Synchronization

/// The link between a camera that codes its pictures (H.264) and the encoder that passes them on: the encoder's requests
/// to the camera, and the reasons why the camera must deliver samples instead.
///
/// Any thread may use it.
package final class PassThrough: Sendable {
  /// A request to the camera's own encoder.
  package enum Request: Hashable, Sendable {
    /// The next picture shall be a key frame, with its parameter sets.
    case keyFrame
    /// The bitrate in bits a second.
    case bitrate(Int)
  }

  /// The properties of the camera that was opened last.
  package struct Camera: Hashable, Sendable {
    /// The rotation that makes its pictures upright; the requested orientation is applied after it.
    package var base: Orientation
    /// `true` if the camera offers pictures that nightjar can rotate and encode.
    package var offersSamples: Bool
    /// The text that distinguishes the camera from others; nil if the system does not know it.
    package var identity: String?

    /// Creates the properties.
    package init(base: Orientation, offersSamples: Bool, identity: String? = nil) {
      self.base = base
      self.offersSamples = offersSamples
      self.identity = identity
    }
  }

  /// The time without a reason for samples after which the camera codes again. Each change costs a new start of the
  /// camera, so a picture that rotates to and fro must not cause one each time.
  package let returnDelay: Duration

  private let perform: @Sendable (Request) -> Void
  private let isRefused = Atomic(false)
  private let needsSamples: Atomic<Bool>
  private let state = Mutex(State())

  private struct State {
    var camera = Camera(base: .upright, offersSamples: true)
    var refusal: String?
    /// The identity of the camera whose pictures were refused.
    var refused: String?
  }

  /// Creates a link.
  ///
  /// - Parameters:
  ///   - needsSamples: `true` if the camera begins with samples.
  ///   - perform: hands a request to the camera without waiting for it.
  package init(
    needsSamples: Bool = false, returnDelay: Duration = Duration(seconds: 2),
    perform: @escaping @Sendable (Request) -> Void
  ) {
    self.needsSamples = Atomic(needsSamples)
    self.returnDelay = returnDelay
    self.perform = perform
  }

  /// Hands a request to the camera.
  package func request(_ request: Request) { perform(request) }

  /// Notes that the camera's coded pictures cannot be passed on. The camera delivers samples from then on.
  package func refuse(_ reason: String) {
    state.withLock { state in
      if state.refusal == nil { (state.refusal, state.refused) = (reason, state.camera.identity) }
      isRefused.store(true, ordering: .releasing)
    }
  }

  /// The reason of ``refuse(_:)``; nil where there was none.
  package var refusal: String? {
    isRefused.load(ordering: .acquiring) ? state.withLock { $0.refusal } : nil
  }

  /// Forgets a refusal: the camera is lost, and another one may come.
  package func forgive() {
    state.withLock { state in
      state.refusal = nil
      isRefused.store(false, ordering: .relaxed)
    }
  }

  /// The camera that was opened last. A refusal of another camera's pictures is forgotten.
  package var camera: Camera {
    get { state.withLock { $0.camera } }
    set {
      state.withLock { state in
        state.camera = newValue
        guard state.refusal != nil, let refused = state.refused, let identity = newValue.identity, refused != identity
        else { return }
        state.refusal = nil
        isRefused.store(false, ordering: .relaxed)
      }
    }
  }

  /// `true` if the camera shall deliver samples when it is opened next, `false` if it shall code.
  package var opensForSamples: Bool {
    get { needsSamples.load(ordering: .relaxed) }
    set { needsSamples.store(newValue, ordering: .relaxed) }
  }
}
