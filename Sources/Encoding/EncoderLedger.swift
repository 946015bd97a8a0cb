package import Media
import Synchronization

/// The counters of all encoders of one lineup, including those that have ended. Each encoding thread adds its share.
package final class EncoderLedger: Sendable {
  private let total = Mutex(EncoderCounters())

  /// Creates a ledger of zero.
  package init() {}

  /// The sum so far.
  package var counters: EncoderCounters { total.withLock { $0 } }

  /// Adds the difference between an encoder's counters and its counters at `last`.
  package func add(_ counters: EncoderCounters, since last: EncoderCounters) {
    total.withLock { total in
      total.imported += counters.imported - last.imported
      total.copied += counters.copied - last.copied
      total.turned += counters.turned - last.turned
      total.overflows += counters.overflows - last.overflows
    }
  }
}
