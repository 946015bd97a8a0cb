import Media

extension VAAPIEncoder {
  /// Checks the first IDR picture and takes the driver's parameter sets if the driver writes its own.
  func examine(_ session: EncodingSession) throws(EncoderError) {
    let coded = session.coded
    do throws(ParameterSetError) {
      if let unit = coded.nalUnits.first(where: { $0.type == .idrSlice }) {
        let beginning = try SliceHeader.Beginning(nalUnit: unit.bytes)
        guard beginning.isIntra, beginning.firstMacroblock == 0 else {
          throw .value("first slice of type \(beginning.sliceType) at macroblock \(beginning.firstMacroblock)")
        }
        let set = session.packed.contains(.sequence) ? parameterSets.picture : coded.picture.map { Array($0) } ?? []
        let identifier = try PictureParameterSet.identifier(nalUnit: set)
        guard beginning.pictureParameterSet == identifier else {
          throw .value("first slice by PPS \(beginning.pictureParameterSet) where the PPS is \(identifier)")
        }
      }
      if let bytes = coded.sequence {
        let size = try SequenceParameterSet(nalUnit: Array(bytes)).size
        guard size == configuration.size else {
          throw .value("size of \(size) instead of \(configuration.size)")
        }
      }
      guard !session.packed.contains(.sequence) else { return }
      let sets = try DriverParameterSets(coded, stream.parameters.sequenceParameters)
      driverSets = sets
      parameterSets = sets.sent
    } catch {
      throw .output(library: "VA-API (\(session.vendor))", error.description)
    }
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
