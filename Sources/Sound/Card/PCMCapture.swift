import CALSA
import Glibc
package import Platform

/// An open recording of a sound card, by alsa-lib. One thread at a time uses it.
///
/// alsa-lib converts the card's samples to 16 bits; it neither changes their rate nor mixes channels, so that samples
/// can be counted against time.
package struct PCMCapture: ~Copyable {
  /// The device's name.
  let device: SoundDeviceName
  /// The card's rate and number of channels.
  let format: SoundFormat
  /// The time between two interrupts of the card: samples come that late.
  let period: Duration
  private let handle: OpaquePointer

  /// `true` if the driver has agreed to give time stamps of `CLOCK_MONOTONIC`.
  private let hasTimestamps: Bool

  /// The times between two interrupts that the card is asked for, in microseconds, the best first. Where the card takes
  /// neither, it is asked for what is nearest to the first.
  static let periodTimes: [UInt32] = [10_000, 20_000]
  /// The longest accepted period: one read takes at most this much, and a longer period delays the sound.
  static let periodLimit = Duration(nanoseconds: 250_000_000)
  /// The time that the card's own memory holds, in microseconds.
  static let bufferTime: UInt32 = 200_000
  /// The rates that are useful: those of telephones to those of studios.
  static let rates = 8_000...192_000
  /// The most channels of a card.
  static let channelLimit = 32

  /// Opens `device` and starts it, with the card's rate that is nearest to ``SoundFormat/trackRate``, and its number of
  /// channels that is nearest to `channels`.
  ///
  /// - Throws: ``SoundError``.
  init(_ device: SoundDeviceName, channels: Int) throws(SoundError) {
    (handle, format, period, hasTimestamps) = try Self.open(device, channels: channels)
    self.device = device
  }

  deinit { snd_pcm_close(handle) }

  private static func open(
    _ device: SoundDeviceName, channels: Int
  ) throws(SoundError) -> (OpaquePointer, SoundFormat, Duration, Bool) {
    nightjar_alsa_silence()
    var opened: OpaquePointer?
    let code = snd_pcm_open(&opened, device.converting, SND_PCM_STREAM_CAPTURE, mode(for: device))
    guard code == 0, let opened else { throw SoundError(opening: device, code: code) }
    do throws(SoundError) {
      let (format, period) = try agree(with: opened, device, channels: channels)
      let hasTimestamps = try setTimestamps(of: opened, device)
      try check(device, "snd_pcm_start", snd_pcm_start(opened))
      return (opened, format, period, hasTimestamps)
    } catch {
      snd_pcm_close(opened)
      throw error
    }
  }

  /// Returns the open mode of `device`. A card delivers all its channels, because alsa-lib would average them;
  /// ``ChannelMix`` takes the first two. A device of the user's configuration keeps its own mixing.
  private static func mode(for device: SoundDeviceName) -> CInt {
    CInt(SND_PCM_NONBLOCK) | (device.isCard ? CInt(SND_PCM_NO_AUTO_CHANNELS) : 0)
  }

  private static func check(_ device: SoundDeviceName, _ call: String, _ code: CInt) throws(SoundError) {
    guard code >= 0 else { throw SoundError(device.text, call: call, code: code) }
  }

  /// Agrees with the card on a format. Returns the format, and the time between two interrupts.
  private static func agree(
    with pcm: OpaquePointer, _ device: SoundDeviceName, channels: Int
  ) throws(SoundError) -> (SoundFormat, Duration) {
    var allocated: OpaquePointer?
    guard snd_pcm_hw_params_malloc(&allocated) == 0, let hardware = allocated else {
      throw .refused(device.text, call: "snd_pcm_hw_params_malloc", errorNumber: ENOMEM)
    }
    defer { snd_pcm_hw_params_free(hardware) }
    try check(device, "snd_pcm_hw_params_any", snd_pcm_hw_params_any(pcm, hardware))
    try check(device, "snd_pcm_hw_params_set_rate_resample", snd_pcm_hw_params_set_rate_resample(pcm, hardware, 0))
    func require(_ what: String, _ code: CInt) throws(SoundError) {
      guard code >= 0 else { throw .format(device.text, request: what) }
    }
    try require(
      "interleaved samples", snd_pcm_hw_params_set_access(pcm, hardware, SND_PCM_ACCESS_RW_INTERLEAVED))
    try require(
      "samples that convert to 16 bits", snd_pcm_hw_params_set_format(pcm, hardware, nightjar_alsa_s16))
    var count = UInt32(channels)
    try require("\(channels) channels", snd_pcm_hw_params_set_channels_near(pcm, hardware, &count))
    var rate = UInt32(SoundFormat.trackRate)
    try require("a rate of 48000 Hz or near it", snd_pcm_hw_params_set_rate_near(pcm, hardware, &rate, nil))
    guard rates.contains(Int(rate)) else {
      throw .format(device.text, request: "a rate of \(rates.lowerBound) to \(rates.upperBound) Hz")
    }
    guard 1...channelLimit ~= Int(count) else { throw .format(device.text, request: "1 to \(channelLimit) channels") }
    if !periodTimes.contains(where: { snd_pcm_hw_params_set_period_time(pcm, hardware, $0, 0) == 0 }) {
      var period = periodTimes[0]
      try require("a period of 10 ms", snd_pcm_hw_params_set_period_time_near(pcm, hardware, &period, nil))
    }
    var buffer = bufferTime
    try require("a buffer of 200 ms", snd_pcm_hw_params_set_buffer_time_near(pcm, hardware, &buffer, nil))
    try check(device, "snd_pcm_hw_params", snd_pcm_hw_params(pcm, hardware))
    // What the card took may be far from the request.
    var frames = snd_pcm_uframes_t()
    try check(
      device, "snd_pcm_hw_params_get_period_size", snd_pcm_hw_params_get_period_size(hardware, &frames, nil))
    let agreed = try Self.period(ofSamples: frames, rate: Int(rate), device)
    return (SoundFormat(rate: Int(rate), channels: Int(count)), agreed)
  }

  /// Returns the length of a period of `samples`.
  ///
  /// - Throws: ``SoundError/format(_:request:)`` where it is beyond ``periodLimit``.
  package static func period(ofSamples samples: UInt, rate: Int, _ device: SoundDeviceName) throws(SoundError)
    -> Duration
  {
    guard samples <= UInt(rate), case let period = Duration(nanoseconds: Int64(samples) * 1_000_000_000 / Int64(rate)),
      period <= periodLimit
    else { throw .format(device.text, request: "a period of at most \(Int(periodLimit.milliseconds)) ms") }
    return period
  }

  /// Requests time stamps of `CLOCK_MONOTONIC` from the driver. Returns `false` where there are none, as in some plugins:
  /// the time of the wake-up takes their place.
  private static func setTimestamps(of pcm: OpaquePointer, _ device: SoundDeviceName) throws(SoundError) -> Bool {
    var allocated: OpaquePointer?
    guard snd_pcm_sw_params_malloc(&allocated) == 0, let software = allocated else {
      throw .refused(device.text, call: "snd_pcm_sw_params_malloc", errorNumber: ENOMEM)
    }
    defer { snd_pcm_sw_params_free(software) }
    try check(device, "snd_pcm_sw_params_current", snd_pcm_sw_params_current(pcm, software))
    let isSet =
      snd_pcm_sw_params_set_tstamp_mode(pcm, software, SND_PCM_TSTAMP_ENABLE) == 0
      && snd_pcm_sw_params_set_tstamp_type(pcm, software, SND_PCM_TSTAMP_TYPE_MONOTONIC) == 0
    try check(device, "snd_pcm_sw_params", snd_pcm_sw_params(pcm, software))
    return isSet
  }

  /// The result of ``read(into:patience:)``.
  package enum Result {
    /// So many samples of each channel. The first of them was recorded at that time.
    case samples(Int, first: Instant, SampleTimes)
    /// Nothing came within the patience.
    case nothing
    /// The card has lost samples, and records again.
    case overrun
  }

  /// Waits for samples and reads them.
  ///
  /// - Parameters:
  ///   - memory: room for whole sets of channels.
  ///   - patience: the longest wait.
  /// - Throws: ``SoundError`` where the card is of no use any more.
  func read(into memory: UnsafeMutableBufferPointer<Int16>, patience: Duration) throws(SoundError) -> Result {
    let state = snd_pcm_wait(handle, CInt(patience.milliseconds.rounded(.up)))
    if state < 0 { return try recover(from: state, "snd_pcm_wait") }
    guard state > 0 else { return .nothing }
    var available = snd_pcm_uframes_t()
    var stamp = snd_htimestamp_t()
    let code = snd_pcm_htimestamp(handle, &available, &stamp)
    let now = Instant.now()
    // Not more than there is: some plugins fail where they are asked for more than their memory holds.
    let room = snd_pcm_uframes_t(memory.count / format.channels)
    let asked = code == 0 && available > 0 ? min(available, room) : room
    let count = snd_pcm_readi(handle, memory.baseAddress, asked)
    if count == -Int(EAGAIN) { return .nothing }
    // The kernel's error numbers go up to 4095.
    if count < 0 { return try recover(from: CInt(max(count, -4095)), "snd_pcm_readi") }
    // A time stamp of another clock is worth nothing, nor is a number of samples that are not there.
    if !hasTimestamps { stamp = snd_htimestamp_t() }
    if count < asked { available = snd_pcm_uframes_t(count) }
    let figures = code < 0 ? nil : (seconds: stamp.tv_sec, nanoseconds: stamp.tv_nsec, available: available)
    let (first, times) = Self.time(ofFirst: count, at: figures, rate: format.rate, now: now)
    return .samples(count, first: first, times)
  }

  /// Returns the time at which the first of `count` samples was recorded, and its source. The driver's figures count where
  /// they are plausible, whatever the driver is.
  ///
  /// - Parameter figures: the time stamp, and the samples that were available then; nil where the driver has none.
  package static func time(
    ofFirst count: Int, at figures: (seconds: Int, nanoseconds: Int, available: UInt)?, rate: Int, now: Instant
  ) -> (Instant, SampleTimes) {
    var (time, available, times) = (now, count, SampleTimes.wakeUp)
    if let figures, figures.available <= UInt(rate * availableSeconds) {
      available = Int(figures.available)
      // A driver without time stamps, or with those of another clock.
      if let stamp = stamp(figures.seconds, figures.nanoseconds), stamp <= now, now - stamp <= stampLimit {
        (time, times) = (stamp, .driver)
      }
    }
    return (time - Duration(nanoseconds: Int64(available) * 1_000_000_000 / Int64(rate)), times)
  }

  /// Returns the point that a driver names; nil for a time that no clock has.
  private static func stamp(_ seconds: Int, _ nanoseconds: Int) -> Instant? {
    guard 0...Int(Int32.max) ~= seconds, 0..<1_000_000_000 ~= nanoseconds else { return nil }
    return Instant(nanoseconds: Int64(seconds) * 1_000_000_000 + Int64(nanoseconds))
  }

  /// The greatest age of a plausible time stamp.
  private static let stampLimit = Duration(nanoseconds: 1_000_000_000)
  /// The most sound that a card's memory plausibly holds, in seconds.
  private static let availableSeconds = 10

  private func recover(from code: CInt, _ call: String) throws(SoundError) -> Result {
    switch -code {
    case EPIPE, ESTRPIPE:
      try Self.check(device, "snd_pcm_prepare", snd_pcm_prepare(handle))
      try Self.check(device, "snd_pcm_start", snd_pcm_start(handle))
      return .overrun
    case EINTR, EAGAIN: return .nothing
    default: throw SoundError(device.text, call: call, code: code)
    }
  }
}
