import Platform

/// The constants of the estimate. The sources are draft-ietf-rmcat-gcc-02 (GCC), RFC 8298 (SCReAM), RFC 8083 and RFC 9438. Constants
/// without a source were chosen by the traces of the tests.
extension BandwidthEstimate {
  // MARK: Queue

  /// The queueing delay that shows congestion: QDELAY_TARGET_LO of RFC 8298 section 4.1.1.
  static let congestedQueue = 0.1
  /// The queueing delay above which the estimate no longer grows.
  static let heldQueue = 0.05
  /// The most jitter that is taken off a queueing delay. Jitter is in part the queue itself.
  static let jitterAllowance = 0.03
  /// The time after the last sample from which one sample alone shows congestion; otherwise two in a row must.
  static let sparseSamples = 0.15
  /// The growth of the queue from one sample to the next that shows congestion, as time at the limit.
  static let grownQueue = 0.05
  /// The queueing delay beyond ``heldQueue`` at which nothing would be sent, so that a queue is gone within about this
  /// time.
  static let drainTime = 0.4
  /// The least part of the estimate that is sent while a queue drains.
  static let leastDrainShare = 0.3
  /// The queueing delay from which on nothing is sent until the queue is gone: a picture that waits longer is of no use.
  static let pausedQueue = 0.6
  /// The least time for which the shortest round trip is remembered; the longest is twice this. A route may change.
  static let baseLifetime = 30.0
  /// The number of decreases in a row without a drained queue after which the queue counts as the path's own delay: the
  /// route has changed, or others fill the queue whatever this side sends.
  static let vainDecreases = 6

  // MARK: Decrease

  /// The share of the measured rate that is left after congestion: BETA_R of RFC 8298 section 4.1.1. GCC section 5.5
  /// has 0.85, but drains no queue beside that.
  static let decrease = 0.9
  /// The least share of the limit that is left after one decrease: a measurement may be wrong.
  static let largestDecrease = 0.25
  /// The least time over which the rate of arrivals is measured.
  static let rateWindow = 0.2
  /// The least time over which the rate is measured if only a queue of ``congestedQueue`` has come at the path's rate.
  static let shortWindow = 0.1
  /// The time after a decrease, in addition to the round trip, in which packets of the former rate still come: the encoder
  /// takes the new rate with its next picture.
  static let reaction = 0.1

  /// The time over which a lasting queue shows the rate of the path.
  static let steadyWindow = 0.4
  /// The share of the limit below which the rate over ``steadyWindow`` lowers the limit.
  static let steadyShare = 0.85

  // MARK: Loss

  /// The least time and the least number of packets over which a loss is measured.
  static let lossWindow = (seconds: 0.5, packets: 40)
  /// The loss above which the estimate no longer grows. GCC section 6 has 0.02, which is what a wireless link loses by
  /// chance.
  static let heldLoss = 0.04
  /// The loss that shows congestion, whatever the queue: GCC section 6.
  static let congestedLoss = 0.1
  /// The loss from which on no more is sent than arrives.
  static let heavyLoss = 0.2
  /// The share of the limit from which on what is sent shows the path's rate by its losses.
  static let fullShare = 0.85

  // MARK: A browser's limit

  /// The share of what is sent below which a browser's limit shows a queue: it counts no headers of UDP and IP.
  static let receiverShare = 0.9

  // MARK: Increase

  /// The bits a second by which the estimate grows in a second: RAMP_UP_SPEED of RFC 8298 section 4.1.1.
  static let rampUp = 200_000.0
  /// The same as a share of the bitrate that is wanted, for those that want much.
  static let rampUpShare = 0.1
  /// The most growth in a second, as a share.
  static let fastestGrowth = 0.25
  /// The least growth in a second, as a share: GCC section 5.5 (8 % a second).
  static let slowestGrowth = 0.08
  /// The growth in a second, as a share, near the rate at which the path was last full.
  static let nearGrowth = 0.04
  /// The rates that are near, as shares of the rate at which the path was last full. Growth from below ends at the least of them.
  static let nearRates = 0.93..<1.05
  /// The multiple of the rate at which the path was last full above which an arriving rate shows that the path takes more than it
  /// did. A measured rate is 10 % too little at times.
  static let widerShare = 1.15
  /// The multiple of the growth on such a path, until the next decrease: nothing is known of the rate at which it is full. CUBIC
  /// (RFC 9438 section 4.5) grows ever faster as well once it is beyond the former rate.
  static let widerSpeed = 2.0
  /// The pause in growth after a decrease.
  static let growthPause = 0.5
  /// The multiple of the recent rate of arrivals beyond which the estimate does not grow: GCC section 5.5.
  static let appLimit = 1.5
  /// The time constant with which the greatest rate of arrivals is forgotten.
  static let peakTime = 4.0

  /// The time after a sample in which another one mostly comes. After that time, the queue counts as draining as it should.
  static let usualInterval = 0.3
  /// The longest time for which the estimate grows at once, and the most by which it does, as a share of itself.
  static let longestGrowth = 3.0
  static let largestGrowth = 0.25

  // MARK: Silence

  /// The multiple of the usual bytes between two reports after which a report is late: some packets may be lost.
  static let lateSteps = 1.1
  /// The time after a lost report in which a late report shows nothing, and only one that is overdue does. A lost report that was
  /// taken for a queue costs less than three seconds of a soft picture.
  static let lostReportMemory = 600.0
  /// The multiple of the usual bytes between two reports after which a report is overdue: one report may be lost, and
  /// some packets.
  static let overdueSteps = 2.1
  /// The multiple of the same from which on a report shows that others before it were lost.
  static let lostReports = 1.5
  /// The multiple of the longest time between two reports after which one is late, whatever it counts.
  static let lateReport = 1.2
  /// The share that is left of the greatest rate that an overdue report allows: part of the bytes came before the path got weak.
  static let silentDecrease = 0.6

  // MARK: Limits

  /// The least estimate in bits a second.
  static let least = 30_000.0
  /// The multiple of the wanted bitrate above which the path has no limit any more, and the least time without congestion
  /// before that.
  static let open = (multiple: 1.25, seconds: 30.0)
  /// The conditions under which a viewer without a sample is silent: at least this time, and this number of its usual
  /// intervals. A viewer that reports by bytes pauses for long if its network gets weak, or if nothing moves in the picture.
  /// Such a pause must not lift its limit. So the bytes of this number of steps between reports must have left too.
  static let silence = (seconds: 15.0, intervals: 4.0, steps: 3.0)
  /// The time without a sample after which a viewer no longer affects the bitrate, whatever has left: it may be gone.
  static let longestSilence = 60.0
}
