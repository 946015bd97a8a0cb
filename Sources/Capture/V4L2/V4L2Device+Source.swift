import CLinux
import Glibc
import Media

/// The signal at the device's input, if an external source feeds it (HDMI, television).
extension V4L2Device {
  /// A change of the signal; see ``V4L2Device/sourceChange(from:)``.
  struct SourceChange: Hashable {
    /// The present size; nil if there is no signal, or none that the device can lock on to.
    var current: PictureSize?
  }

  /// The largest number of events read at once: the kernel keeps one of a kind.
  private static let eventLimit = 64

  /// Subscribes to source changes (`V4L2_EVENT_SOURCE_CHANGE`). Returns `false` if the driver does not support them.
  func subscribeSourceChange() -> Bool {
    var subscription = v4l2_event_subscription()
    subscription.type = nightjar_V4L2_EVENT_SOURCE_CHANGE
    // Events carry the number of their input. A driver without inputs has only number 0.
    var input: CInt = 0
    if control(nightjar_VIDIOC_G_INPUT, &input) == 0 { subscription.id = UInt32(bitPattern: input) }
    return control(nightjar_VIDIOC_SUBSCRIBE_EVENT, &subscription) == 0
  }

  /// Reads all waiting events. Returns `true` if one says that the resolution may have changed.
  func takeSourceChange() -> Bool {
    var isChanged = false
    for _ in 0..<Self.eventLimit {
      var event = v4l2_event()
      guard control(nightjar_VIDIOC_DQEVENT, &event) == 0 else { break }
      if event.type == nightjar_V4L2_EVENT_SOURCE_CHANGE,
        event.u.src_change.changes & nightjar_V4L2_EVENT_SRC_CH_RESOLUTION != 0
      {
        isChanged = true
      }
    }
    return isChanged
  }

  /// Returns the difference between the signal and the one that `format` was negotiated for; nil if there is none.
  ///
  /// Drivers send the event for smaller changes too: for a signal that returned, or for colours. So the input is
  /// checked before a stream ends for it.
  func sourceChange(from format: DriverFormat) -> SourceChange? {
    var detected = v4l2_dv_timings()
    switch control(nightjar_VIDIOC_QUERY_DV_TIMINGS, &detected) {
    case 0:
      var set = v4l2_dv_timings()
      guard control(nightjar_VIDIOC_G_DV_TIMINGS, &set) == 0 else { break }
      if detected.bt.width != set.bt.width || detected.bt.height != set.bt.height
        || detected.bt.interlaced != set.bt.interlaced
      {
        return SourceChange(current: PictureSize(width: Int(detected.bt.width), height: Int(detected.bt.height)))
      }
    case ENOLINK, ENOLCK, ERANGE: return SourceChange()
    default: break
    }
    var standard: v4l2_std_id = 0
    var setStandard: v4l2_std_id = 0
    if control(nightjar_VIDIOC_QUERYSTD, &standard) == 0, control(nightjar_VIDIOC_G_STD, &setStandard) == 0 {
      // No standard means no signal.
      guard standard != 0 else { return SourceChange() }
      if standard & setStandard == 0 {
        return SourceChange(current: PictureSize(width: 720, height: Self.lines(of: standard)))
      }
    }
    var argument = v4l2_format()
    argument.type = bufferType
    guard control(nightjar_VIDIOC_G_FMT, &argument) == 0 else { return nil }
    var current = DriverFormat(argument)
    current.color.signal = format.color.signal
    return current == format ? nil : SourceChange(current: current.size)
  }

  /// `true` if there is an input for a signal, but no signal that the device can lock on to.
  var lacksSignal: Bool {
    var detected = v4l2_dv_timings()
    return [ENOLINK, ENOLCK, ERANGE].contains(control(nightjar_VIDIOC_QUERY_DV_TIMINGS, &detected))
  }

  /// Sets the timings of the present signal: without that, an HDMI receiver keeps the timings of the last one.
  func adoptTimings() {
    var detected = v4l2_dv_timings()
    guard control(nightjar_VIDIOC_QUERY_DV_TIMINGS, &detected) == 0 else { return }
    // The driver refuses while another program streams. Then it refuses the format too, with a reason.
    _ = control(nightjar_VIDIOC_S_DV_TIMINGS, &detected)
  }

  /// Returns 480 for the standards of 525 lines, 576 for those of 625.
  private static func lines(of standard: v4l2_std_id) -> Int {
    standard & nightjar_V4L2_STD_525_60 != 0 ? 480 : 576
  }
}
