import Media
import Platform

extension DriverThread {
  /// The state of the thread.
  enum State {
    /// The thread opens and prepares the encoder, or waits before it does.
    case opening
    /// The input is mapped; the thread sleeps until a request comes.
    case ready
    /// The thread is in a call to the driver.
    case working
    /// The thread is blocked while the access unit is lent.
    case lending
    /// The driver could not use the frame's DMA-BUF; the thread sleeps until the frame is loaded again.
    case refused
    /// The thread has ended.
    case ended
  }

  enum Order {
    case encode(keyFrame: Bool)
    /// The caller could not load the frame; handled like a failure of the driver.
    case fail(EncoderError)
  }

  /// The rates requested by the last ``change(bitrate:frameRate:)``.
  struct Rates {
    let bitrate: Int
    let frameRate: FrameRate
  }

  /// The properties of an encoder.
  package struct Description {
    let name: String
    let parameterSets: ParameterSets
    /// The orientations that the encoder applies; the caller removes those that fail.
    var turns: OrientationSet

    /// Reads the properties of `encoder`. The calling thread must own the encoder.
    init(of encoder: any VideoEncoder) {
      name = encoder.name
      parameterSets = encoder.parameterSets
      turns = encoder.turns
    }
  }

  /// The parts of an access unit, while the thread is blocked.
  struct Loan {
    let nalUnits: UnsafeBufferPointer<NALUnit>
    let isKeyFrame: Bool
    let timestamp: Instant
    let captured: Instant
  }
}

extension EncoderError {
  /// `true` if the same call may succeed later. A capability that is missing on this host, or for these settings, stays
  /// missing while the program runs.
  var mayPass: Bool {
    switch self {
    case .open, .call, .importRefused, .encode, .output: true
    case .configuration, .frameSize, .frameRows, .order, .notTurned, .unavailable, .permission, .hung, .lost, .stopped:
      false
    }
  }
}
