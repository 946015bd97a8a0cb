import Media

extension DriverThread {
  /// Where the thread is.
  enum State {
    /// The encoder is being made and warmed up, or the thread waits before it does so.
    case opening
    /// The input is mapped; the thread sleeps until an order comes.
    case ready
    /// The thread is in the driver's hands.
    case working
    /// The thread is held, and the access unit lent.
    case lending
    /// The frame's DMA-BUF was of no use; the thread sleeps until the frame was loaded once more.
    case refused
    /// The thread is at its end.
    case ended
  }

  enum Order {
    case encode(keyFrame: Bool)
    /// The caller could not load the frame: as if the driver had failed.
    case fail(EncoderError)
  }

  /// What is wanted of the encoder, by the last ``change(bitrate:frameRate:)``.
  struct Wish {
    let bitrate: Int
    let frameRate: FrameRate
  }

  /// What an encoder is.
  struct Description {
    let name: String
    let parameterSets: ParameterSets
    /// What it lays by itself; the caller takes away what it fails on.
    var turns: OrientationSet

    /// That of `encoder`, to be asked by whoever may speak to it.
    init(of encoder: any VideoEncoder) {
      name = encoder.name
      parameterSets = encoder.parameterSets
      turns = encoder.turns
    }
  }

  /// The parts of an access unit, while the thread is held.
  struct Loan {
    let nalUnits: UnsafeBufferPointer<NALUnit>
    let isKeyFrame: Bool
    let timestamp: MediaTime
    let captured: MediaTime
  }
}

extension EncoderError {
  /// Whether the same call may go better later. What this machine has not got, or not for these settings, it will not
  /// have while the program runs.
  var mayPass: Bool {
    switch self {
    case .open, .call, .importRefused, .encode, .output: true
    case .configuration, .frameSize, .frameRows, .order, .notTurned, .unavailable, .permission, .hung, .lost, .stopped:
      false
    }
  }
}
