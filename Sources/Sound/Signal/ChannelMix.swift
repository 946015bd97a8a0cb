/// The way from a card's channels to those of the track.
package struct ChannelMix {
  /// The card's channels.
  let input: Int
  /// The track's channels, 1 or 2.
  let output: Int

  /// Creates a mix of `input` channels into `output` channels.
  package init(input: Int, output: Int) {
    (self.input, self.output) = (input, output)
  }

  /// Mixes samples.
  ///
  /// Of more than two channels, the first two count: the others of a microphone array are its raw microphones, or what
  /// its loudspeaker plays. Two become one by their mean, so that nothing clips.
  ///
  /// - Returns: The number of samples of all channels that were written.
  package func apply(
    _ samples: UnsafeBufferPointer<Int16>, into memory: UnsafeMutableBufferPointer<Int16>
  ) -> Int {
    let count = min(samples.count / input, memory.count / output)
    for index in 0..<count {
      let left = samples[index * input]
      let right = input > 1 ? samples[index * input + 1] : left
      if output == 1 {
        memory[index] = Int16((Int32(left) + Int32(right)) / 2)
      } else {
        memory[2 * index] = left
        memory[2 * index + 1] = right
      }
    }
    return count * output
  }
}
