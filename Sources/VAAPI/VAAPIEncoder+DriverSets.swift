import Media

extension VAAPIEncoder {
  /// Checks the first IDR picture and takes the driver's parameter sets if the driver writes its own. Some drivers read packed
  /// parameter sets, and write others.
  func examine(_ session: EncodingSession) throws(EncoderError) {
    let coded = session.coded
    do throws(ParameterSetError) {
      if !session.packed.contains(.sequence) || !coded.has(stream.parameterSets) {
        let sets = try DriverParameterSets(coded, stream.configuration)
        driverSets = sets
        parameterSets = sets.sent
      }
      switch configuration.codec {
      case .h264: try examineH264(coded)
      case .hevc: try examineHEVC(coded)
      }
    } catch {
      throw .output(library: "VA-API (\(session.vendor))", error.description)
    }
  }

  private func examineH264(_ coded: CodedBuffer) throws(ParameterSetError) {
    try checkSize(SequenceParameterSet(nalUnit: parameterSets.sequence).size)
    guard let unit = coded.nalUnits.first(where: { $0.type == .idrSlice }) else { return }
    let beginning = try SliceHeader.Beginning(nalUnit: unit.bytes)
    guard beginning.isIntra, beginning.firstMacroblock == 0 else {
      throw .value("first slice of type \(beginning.sliceType) at macroblock \(beginning.firstMacroblock)")
    }
    try checkIdentifier(
      beginning.pictureParameterSet, PictureParameterSet.identifier(nalUnit: parameterSets.picture))
  }

  private func examineHEVC(_ coded: CodedBuffer) throws(ParameterSetError) {
    let sequence = try HEVCSequenceParameterSet(nalUnit: parameterSets.sequence)
    let picture = try HEVCPictureParameterSet(nalUnit: parameterSets.picture)
    try checkSize(sequence.size)
    guard let unit = coded.nalUnits.first(where: { VideoCodec.hevc.isKeyFrame($0) }) else { return }
    let slice = try HEVCSliceHeader(unit, picture: picture, sequence: sequence)
    guard slice.isFirst, slice.type == .intra else {
      throw .value("first slice of type \(slice.type?.rawValue ?? -1) at block \(slice.address)")
    }
    try checkIdentifier(slice.pictureParameterSet, Int(picture.identifier))
  }

  private func checkSize(_ size: PictureSize) throws(ParameterSetError) {
    guard size == configuration.size else { throw .value("size of \(size) instead of \(configuration.size)") }
  }

  private func checkIdentifier(_ identifier: Int, _ known: Int) throws(ParameterSetError) {
    guard identifier == known else { throw .value("first slice by PPS \(identifier) where the PPS is \(known)") }
  }

  /// Throws an error if the driver's parameter sets differ from those that receivers have.
  func checkDriverSets(_ session: EncodingSession) throws(EncoderError) {
    guard let driverSets else { return }
    guard driverSets.apply(to: session.coded) else {
      session.coded.release()
      needsKeyFrame = true
      throw .output(library: "VA-API (\(session.vendor))", "the driver changed its parameter sets in mid-stream")
    }
  }
}
