import Platform
import Serving

/// The stream that runs already, as its control socket reports it.
struct RunningStream {
  /// The process identifier; `nil` if the kernel does not tell.
  let process: Int32?
  /// The first status that the stream reported.
  let status: ApplianceStatus
  private let client: ControlClient
  private let asked = Instant.now()

  /// The time to wait for an answer.
  static let patience = Duration(seconds: 4)

  /// Connects to the control socket at `path`. Returns no stream, and a finding with the reason, if no stream answers.
  ///
  /// - Parameter again: the remedy that repeats the examination as root.
  static func find(at path: String, again: Mend) -> (stream: RunningStream?, finding: Finding) {
    let client = ControlClient(path: path, patience: patience)
    var process: Int32?
    do {
      process = try client.serverProcess()
      let stream = RunningStream(process: process, status: try client.status().value, client: client)
      let cameras = stream.status.cameras.count
      return (
        stream,
        Finding(
          .stream,
          "nightjar stream runs\(process.map { " (process \($0))" } ?? ""), \(cameras) camera\(cameras == 1 ? "" : "s"), for "
            + StatusDisplay.clock(Duration(seconds: stream.status.uptimeSeconds)))
      )
    } catch ControlClientError.noSocket, ControlClientError.deaf {
      return (nil, Finding(.stream, "none runs (no answer at \(path))"))
    } catch ControlClientError.noPermission {
      return (
        nil,
        Finding(
          .streamClosed, "one may run: this user may not use \(path)",
          mends: [again, .command("ls -l \(ShellWord.quoted(path))")])
      )
    } catch {
      let end = process.map { [Mend.command("kill -9 \($0)")] } ?? []
      return (
        nil,
        Finding(
          .streamSilent, "\(error)", mends: [.advice("as a service: sudo systemctl restart nightjar")] + end)
      )
    }
  }

  private init(process: Int32?, status: ApplianceStatus, client: ControlClient) {
    (self.process, self.status, self.client) = (process, status, client)
  }

  /// `true` if the stream has several cameras. An absent one counts too; it may be in both lists.
  var hasSeveralCameras: Bool { Set(status.cameras.map(\.name) + status.absent.map(\.name)).count > 1 }

  /// Returns `true` if the stream listens at the address, or at all addresses of its family.
  func listens(at address: String, port: Int) -> Bool {
    guard let address = ListeningAddress(address) else { return false }
    return status.listeners.contains { listener in
      listener.port == port && ListeningAddress(listener.address).map(address.isCovered) == true
    }
  }

  /// Returns the camera of that name; `nil` if the stream has none, or one of another source.
  func camera(_ name: String, source: SourceSelection) -> StreamStatus? {
    guard let camera = status.cameras.first(where: { $0.name == name }) else { return nil }
    switch source {
    case .auto: return camera
    case .test: return camera.camera == nil ? camera : nil
    case .file(let path): return camera.source.name == path ? camera : nil
    case .device(let path):
      guard let condition = camera.camera else { return nil }
      // A disconnected camera may have had another node.
      guard condition.state == "live", let device = condition.device else { return camera }
      return CameraNode.resolved(device) == CameraNode.resolved(path) ? camera : nil
    }
  }

  /// The lowest priority of the threads that capture and send, 0 without real-time priority; `nil` if nothing streams.
  var realTimePriority: Int? {
    status.cameras.flatMap(\.threads).filter { $0.name != "nj-encode" }.map(\.priority).min()
  }

  /// The figures of a camera over a measured time.
  struct Measurement {
    /// The rate of pictures from the camera itself, without placeholders, per second.
    let framesPerSecond: Double
    /// The part of the time in which the encoder was at work; `nil` if nothing was encoded.
    let load: Double?
    /// The measured time in seconds.
    let seconds: Double
    /// The status at the end.
    let status: StreamStatus
  }

  /// Measures `camera`; returns `nil` if the stream no longer answers. The call waits until two seconds have passed
  /// since the first request.
  func measure(_ camera: StreamStatus) -> Measurement? {
    // Without a descriptor there is no measurement either; a stream that no longer answers has a finding of its own.
    guard let interrupt = try? Interrupt() else { return nil }
    _ = interrupt.wait(until: asked + Duration(seconds: 2))
    guard let now = try? client.status(of: camera.name).value else { return nil }
    func own(_ status: StreamStatus) -> Int { status.frames.captured - (status.camera?.placeholderFrames ?? 0) }
    let time = now.uptimeSeconds - camera.uptimeSeconds
    let isAtWork = time > 0 && now.frames.encoded > camera.frames.encoded
    return Measurement(
      framesPerSecond: time > 0 ? Double(own(now) - own(camera)) / time : 0,
      load: isAtWork ? (now.encoder.busySeconds - camera.encoder.busySeconds) / time : nil, seconds: time, status: now)
  }
}
