import Control
import Credentials
import Diagnosis
import Media

/// The stream that runs already, as its control socket tells.
struct RunningStream {
  /// The process; nil where the kernel does not tell.
  let process: Int32?
  /// How it was first.
  let status: BoxStatus
  private let client: ControlClient
  private let asked = MediaTime.now()

  /// How long it is waited for.
  static let patience = MediaTime(seconds: 4)

  /// Asks at `path`; nil, and a line on why, where no stream answers.
  ///
  /// - Parameter again: what asks again, by root.
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
            + StatusDisplay.clock(MediaTime(seconds: stream.status.uptimeSeconds)))
      )
    } catch ControlClientError.noSocket, ControlClientError.deaf {
      return (nil, Finding(.stream, "none runs (no answer at \(path))"))
    } catch ControlClientError.noPermission {
      return (
        nil,
        Finding(
          .streamClosed, "one may run: this user may not ask it at \(path)",
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

  private init(process: Int32?, status: BoxStatus, client: ControlClient) {
    (self.process, self.status, self.client) = (process, status, client)
  }

  /// Whether it listens there, or at all addresses of that family.
  func listens(at address: String, port: Int) -> Bool {
    guard let address = ListeningAddress(address) else { return false }
    return status.listeners.contains { listener in
      listener.port == port && ListeningAddress(listener.address).map(address.isCovered) == true
    }
  }

  /// The camera of that name; nil where it has none, or one of another source.
  func camera(_ name: String, source: SourceSelection) -> StreamStatus? {
    guard let camera = status.cameras.first(where: { $0.name == name }) else { return nil }
    switch source {
    case .auto: return camera
    case .test: return camera.camera == nil ? camera : nil
    case .file(let path): return camera.source.name == path ? camera : nil
    case .device(let path):
      // What it was found by: the link, or the node that it led to.
      guard camera.camera != nil else { return nil }
      let names = [path, CameraNode.resolved(path)]
      let isIt = names.contains { camera.source.name.contains("(\($0))") || camera.source.name == $0 }
      // One that is away may have had another node.
      return isIt || camera.camera?.state != "live" ? camera : nil
    }
  }

  /// The least priority of the threads that capture and send, 0 for none; nil where nothing streams.
  var realTimePriority: Int? {
    status.cameras.flatMap(\.threads).filter { $0.name != "nj-encode" }.map(\.priority).min()
  }

  /// What a camera of it did while it was watched.
  struct Measurement {
    /// Pictures a second that the camera delivered itself.
    let framesPerSecond: Double
    /// The part of the time in which its encoder was at work; nil where it encoded nothing.
    let load: Double?
    /// For how many seconds.
    let seconds: Double
    /// How it is now.
    let status: StreamStatus
  }

  /// What `camera` does; nil where it does not answer any more. Waits until two seconds have passed since it was asked
  /// first.
  func measure(_ camera: StreamStatus) -> Measurement? {
    let interrupt = try? Interrupt()
    guard let interrupt else { return nil }
    _ = interrupt.wait(until: asked + MediaTime(seconds: 2))
    guard let now = try? client.status(of: camera.name).value else { return nil }
    func own(_ status: StreamStatus) -> Int { status.frames.captured - (status.camera?.placeholderFrames ?? 0) }
    let time = now.uptimeSeconds - camera.uptimeSeconds
    let isAtWork = time > 0 && now.frames.encoded > camera.frames.encoded
    return Measurement(
      framesPerSecond: time > 0 ? Double(own(now) - own(camera)) / time : 0,
      load: isAtWork ? (now.encoder.busySeconds - camera.encoder.busySeconds) / time : nil, seconds: time, status: now)
  }
}
