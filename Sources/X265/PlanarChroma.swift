#if X265
  import Media

  /// The two chroma planes of a picture, which x265 reads one by one. NV12 has them interleaved.
  struct PlanarChroma: ~Copyable {
    /// The Cb samples.
    let blue: UnsafeMutablePointer<UInt8>
    /// The Cr samples.
    let red: UnsafeMutablePointer<UInt8>
    /// The width of both planes, in samples.
    let width: Int
    /// The height of both planes, in samples.
    let height: Int

    /// Allocates the planes of pictures of `size`.
    init(size: PictureSize) {
      width = size.width / 2
      height = size.height / 2
      blue = .allocate(capacity: width * height)
      red = .allocate(capacity: width * height)
    }

    deinit {
      blue.deallocate()
      red.deallocate()
    }

    /// Splits the chroma rows of a picture of the planes' size; `stride` is the number of bytes between two rows.
    func split(_ chroma: UnsafePointer<UInt8>, stride: Int) {
      for row in 0..<height {
        let source = UnsafeRawPointer(chroma + row * stride)
        let (blue, red) = (UnsafeMutableRawPointer(blue + row * width), UnsafeMutableRawPointer(red + row * width))
        var column = 0
        while column + 16 <= width {
          let pairs = source.loadUnaligned(fromByteOffset: column * 2, as: SIMD32<UInt8>.self)
          blue.storeBytes(of: pairs.evenHalf, toByteOffset: column, as: SIMD16<UInt8>.self)
          red.storeBytes(of: pairs.oddHalf, toByteOffset: column, as: SIMD16<UInt8>.self)
          column += 16
        }
        while column < width {
          blue.storeBytes(
            of: source.load(fromByteOffset: column * 2, as: UInt8.self), toByteOffset: column, as: UInt8.self)
          red.storeBytes(
            of: source.load(fromByteOffset: column * 2 + 1, as: UInt8.self), toByteOffset: column, as: UInt8.self)
          column += 1
        }
      }
    }
  }
#endif
