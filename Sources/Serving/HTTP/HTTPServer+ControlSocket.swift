import Glibc
import NIOCore
import NIOPosix
import Synchronization

extension HTTPServer {
  /// Starts to serve the control API on a Unix socket, which only its owner and group may use; clients are answered from
  /// its return on.
  ///
  /// - Throws: ``ControlSocketError``.
  package convenience init(
    path: String = ControlSocket.defaultPath, limits: Limits = Limits(), target: any ControlTarget
  ) throws(ControlSocketError) {
    let socket = try ListeningSocket(path: path, backlog: CInt(limits.connections))
    let access = GroupAccess(group: socket.group)
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let service = HTTPService(
      api: ControlAPI(target: target, bodyLimit: limits.body, namesFiles: true), limits: limits, access: access)
    let listener: any Channel
    do {
      listener = try service.bootstrap(group).withBoundSocket(socket.descriptor).wait()
    } catch {
      // The reason why there is no listener is reported; a new group has nothing else to end.
      try? group.syncShutdownGracefully()
      throw .system(step: "serve", path: path, errorNumber: (error as? IOError)?.errnoCode ?? EIO)
    }
    // No closure can consume a noncopyable value: the one task takes it.
    let waiting = Mutex<ListeningSocket?>(socket)
    self.init(
      access,
      serving: ServingTask(group) {
        if let socket = waiting.withLock({ $0.take() }) {
          await service.serve([listener])
          _ = socket
        }
      })
  }
}
