#if X265
  import CX265
  public import Media

  extension X265Encoder {
    /// Encodes flat grey pictures until x265 has allocated and touched every frame that it will need. These pictures have
    /// no effect on later ones, because x265 gets a quantizer with each picture, and the next picture is an IDR picture.
    ///
    /// - Throws: ``/Media/EncoderError`` if the encoder is stopped or x265 fails.
    public func prepare() throws(EncoderError) {
      guard encoder != nil else { throw .stopped }
      guard !isPrepared else { return }
      isPrepared = true
      // An encoder that has encoded pictures is prepared already, and its next picture need not be a key frame.
      guard nextIndex == 0 else { return }
      let luma = configuration.size.pixels
      let grey = UnsafeMutablePointer<UInt8>.allocate(capacity: luma)
      grey.initialize(repeating: 128, count: luma)
      defer { grey.deallocate() }
      set(luma: grey, stride: configuration.size.width, blue: grey, red: grey)
      for index in 0..<references + 2 { _ = try code(isKeyFrame: index == 0, quantizer: 26) }
      needsKeyFrame = true
    }
  }
#endif
