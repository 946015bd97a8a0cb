import CVA
import Media

/// The parameters of a stream of either codec.
enum CodecParameters {
  case h264(H264Parameters)
  case hevc(HEVCParameters)

  /// The parameter sets with start codes; the driver puts them before an IDR picture.
  var packedSets: [UInt8] {
    switch self {
    case .h264(let parameters): parameters.packedSets
    case .hevc(let parameters): parameters.packedSets
    }
  }

  /// The parameter sets as NAL units.
  var parameterSets: ParameterSets? {
    packedSets.withUnsafeBytes { stream in
      switch self {
      case .h264: ParameterSets(.h264, firstIn: stream)
      case .hevc: ParameterSets(.hevc, firstIn: stream)
      }
    }
  }

  /// The number of slices in a picture.
  var sliceCount: Int {
    switch self {
    case .h264(let parameters): parameters.sliceCount
    case .hevc: 1
    }
  }

  /// The initial quantizer of the PPS, to which the slices' quantizers are relative.
  var initialQuantizer: Int {
    switch self {
    case .h264(let parameters): parameters.pictureParameters.initialQuantizer
    case .hevc(let parameters): parameters.pictureParameters.initialQuantizer
    }
  }

  /// Adds the sequence's buffer; `bitrate` is 0 if the driver does not control the rate.
  func addSequence(to buffers: PictureBuffers, bitrate: Int, frameRate: FrameRate) throws(EncoderError) {
    switch self {
    case .h264(let parameters): try parameters.addSequence(to: buffers, bitrate: bitrate, frameRate: frameRate)
    case .hevc(let parameters): try parameters.addSequence(to: buffers, bitrate: bitrate, frameRate: frameRate)
    }
  }

  /// Adds the picture's buffer. The picture is reconstructed in `reconstructed` and refers to `reference`, whose
  /// position was `referencePosition`.
  func addPicture(
    to buffers: PictureBuffers, _ position: PicturePosition, reconstructed: VASurfaceID, reference: VASurfaceID,
    referencePosition: PicturePosition, codedBuffer: VABufferID
  ) throws(EncoderError) {
    switch self {
    case .h264(let parameters):
      try parameters.addPicture(
        to: buffers, position, reconstructed: reconstructed, reference: reference,
        referencePosition: referencePosition, codedBuffer: codedBuffer)
    case .hevc(let parameters):
      try parameters.addPicture(
        to: buffers, position, reconstructed: reconstructed, reference: reference,
        referencePosition: referencePosition, codedBuffer: codedBuffer)
    }
  }

  /// Adds the slices; if `packed`, each follows its packed header.
  func addSlices(
    to buffers: PictureBuffers, _ position: PicturePosition, quantizer: Int, packed: Bool
  ) throws(EncoderError) {
    switch self {
    case .h264(let parameters):
      try parameters.addSlices(to: buffers, position, quantizer: quantizer, packed: packed)
    case .hevc(let parameters):
      try parameters.addSlice(to: buffers, position, quantizer: quantizer, packed: packed)
    }
  }
}
