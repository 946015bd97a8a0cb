/// The processors that the program may still use, for encoders that begin beside those at work. Any thread may ask.
package protocol ProcessorRoom: Sendable {
  /// The processors that the program may use beyond those that it uses and those that are granted; less than 0 if it uses too many.
  var room: Double { get }

  /// Grants processors to an encoder that begins. Choice and grant are one step, so that two encoders never get the same processors.
  ///
  /// - Parameters:
  ///   - former: the grant of the encoder that has ended for this one; nil if there was none. Its processors are free.
  ///   - choose: returns the processors that the encoder takes, given those that are free.
  func take(inPlaceOf former: ProcessorGrant?, _ choose: (_ room: Double) -> Double) -> ProcessorGrant
}

/// The processors that were granted to an encoder, as an estimate of its use.
package struct ProcessorGrant: Hashable, Sendable {
  /// The number of the grant; each grant of one ``ProcessorRoom`` has another.
  package let number: Int
  /// The processors, parts included.
  package let processors: Double

  /// Creates a grant.
  package init(number: Int, processors: Double) { (self.number, self.processors) = (number, processors) }
}
