import Glibc

/// The power spectrum of 1024 samples under a Hann window. Allocates at its creation only.
struct Spectrum: ~Copyable {
  /// The number of samples.
  static let size = 1024
  /// The number of powers: from 0 to half the sample rate.
  static let bins = size / 2 + 1

  private let real: UnsafeMutablePointer<Float>
  private let imaginary: UnsafeMutablePointer<Float>
  private let window: UnsafeMutablePointer<Float>
  private let cosines: UnsafeMutablePointer<Float>
  private let sines: UnsafeMutablePointer<Float>
  private let order: UnsafeMutablePointer<Int32>
  /// The powers of the last samples.
  let powers: UnsafeMutablePointer<Float>

  init() {
    func memory(_ count: Int, _ value: (Int) -> Double = { _ in 0 }) -> UnsafeMutablePointer<Float> {
      let memory = UnsafeMutablePointer<Float>.allocate(capacity: count)
      for index in 0..<count { (memory + index).initialize(to: Float(value(index))) }
      return memory
    }
    let size = Self.size
    real = memory(size)
    imaginary = memory(size)
    window = memory(size) { 0.5 - 0.5 * cos(2 * Double.pi * Double($0) / Double(size)) }
    cosines = memory(size / 2) { cos(2 * Double.pi * Double($0) / Double(size)) }
    sines = memory(size / 2) { -sin(2 * Double.pi * Double($0) / Double(size)) }
    powers = memory(Self.bins)
    order = .allocate(capacity: size)
    let bits = size.trailingZeroBitCount
    for index in 0..<size {
      var reversed = 0
      for bit in 0..<bits where index >> bit & 1 == 1 { reversed |= 1 << (bits - 1 - bit) }
      (order + index).initialize(to: Int32(reversed))
    }
  }

  deinit {
    for memory in [real, imaginary, window, cosines, sines, powers] { memory.deallocate() }
    order.deallocate()
  }

  /// Computes the powers of the samples of a ring that begins at `start`: an FFT of radix 2 (Cooley and Tukey, 1965).
  func measure(_ ring: UnsafeMutablePointer<Float>, from start: Int) {
    let size = Self.size
    for index in 0..<size {
      let place = Int(order[index])
      real[place] = ring[(start + index) & (size - 1)] * window[index]
      imaginary[place] = 0
    }
    var half = 1
    while half < size {
      let step = size / (2 * half)
      var base = 0
      while base < size {
        for offset in 0..<half {
          let (cosine, sine) = (cosines[offset * step], sines[offset * step])
          let (a, b) = (base + offset, base + offset + half)
          let (x, y) = (real[b] * cosine - imaginary[b] * sine, real[b] * sine + imaginary[b] * cosine)
          (real[b], imaginary[b]) = (real[a] - x, imaginary[a] - y)
          (real[a], imaginary[a]) = (real[a] + x, imaginary[a] + y)
        }
        base += 2 * half
      }
      half *= 2
    }
    for index in 0..<Self.bins { powers[index] = real[index] * real[index] + imaginary[index] * imaginary[index] }
  }
}
