extension SliceHeader {
  /// The first fields of a slice header (ITU-T H.264 clause 7.3.3), which can be read without a parameter set.
  public struct Beginning: Hashable, Sendable {
    /// `first_mb_in_slice`.
    public var firstMacroblock: Int
    /// `slice_type`, 0…9.
    public var sliceType: Int
    /// `pic_parameter_set_id`.
    public var pictureParameterSet: Int

    /// `true` for an I slice.
    public var isIntra: Bool { sliceType % 5 == 2 }

    /// Reads the fields from a slice's NAL unit, header byte first.
    ///
    /// - Throws: ``ParameterSetError`` where the header is truncated or a value is impossible.
    public init(nalUnit: UnsafeRawBufferPointer) throws(ParameterSetError) {
      // Three codes of at most 63 bits each, with emulation prevention.
      var reader = BitReader(RawByteSequencePayload.removingEmulationPrevention(nalUnit.dropFirst().prefix(40)))
      firstMacroblock = Int(try reader.unsigned())
      sliceType = try reader.unsigned(to: 9, "slice_type")
      pictureParameterSet = try reader.unsigned(to: 255, "pic_parameter_set_id")
    }
  }
}
