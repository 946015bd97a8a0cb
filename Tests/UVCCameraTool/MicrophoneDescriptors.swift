/// The descriptors of the camera's microphone: USB Audio Class 1.0, 16 bits, mono, 48 kHz, one isochronous endpoint.
enum MicrophoneDescriptors {
  /// The feature unit with mute and volume.
  static let featureUnit = 2
  private static let inputTerminal = 1
  private static let outputTerminal = 3
  /// Samples a second.
  static let rate = 48_000
  /// Packets a second: `bInterval` 4 is eight microframes.
  static let packetRate = 1_000
  /// Two samples more than a packet needs, for a clock that is fast.
  private static let packetLimit = 2 * (rate / packetRate + 2)

  /// The function: an interface association, and both of its interfaces.
  static var function: [UInt8] {
    let control = UInt8(USBDescriptors.Number.soundControlInterface)
    return [8, 0x0b, control, 2, 0x01, 0x02, 0, 0] + self.control + streaming
  }

  /// The audio control interface: microphone, mute and volume, output to USB (UAC 1.0 section 4.3).
  private static var control: [UInt8] {
    let microphone: [UInt8] = [12, 0x24, 2, UInt8(inputTerminal), 0x01, 0x02, 0, 1, 0, 0, 0, 0]
    let feature: [UInt8] = [9, 0x24, 6, UInt8(featureUnit), UInt8(inputTerminal), 1, 0x03, 0, 0]
    let output: [UInt8] = [9, 0x24, 3, UInt8(outputTerminal), 0x01, 0x01, 0, UInt8(featureUnit), 0]
    var header: [UInt8] = [9, 0x24, 1, 0x00, 0x01]
    header.append(9 + microphone.count + feature.count + output.count, bytes: 2)
    header += [1, UInt8(USBDescriptors.Number.soundStreamingInterface)]
    let interface = UInt8(USBDescriptors.Number.soundControlInterface)
    return [9, 4, interface, 0, 0, 0x01, 1, 0, 0] + header + microphone + feature + output
  }

  /// The audio streaming interface: nothing in setting 0, PCM and the endpoint in setting 1 (UAC 1.0 section 4.5).
  private static var streaming: [UInt8] {
    let interface = UInt8(USBDescriptors.Number.soundStreamingInterface)
    let general: [UInt8] = [7, 0x24, 1, UInt8(outputTerminal), 1, 0x01, 0x00]
    var format: [UInt8] = [11, 0x24, 2, 1, 1, 2, 16, 1]
    format.append(rate, bytes: 3)
    // Isochronous, asynchronous: the clock is the camera's own.
    var endpoint: [UInt8] = [9, 5, UInt8(0x80 | USBDescriptors.Number.soundEndpoint), 0x05]
    endpoint.append(packetLimit, bytes: 2)
    endpoint += [4, 0, 0]
    var companion: [UInt8] = [6, 0x30, 0, 0]
    companion.append(packetLimit, bytes: 2)
    return [9, 4, interface, 0, 0, 0x01, 2, 0, 0] + [9, 4, interface, 1, 1, 0x01, 2, 0, 0] + general + format
      + endpoint + companion + [7, 0x25, 1, 0, 0, 0, 0]
  }
}
