import CLinux
import Foundation
import Platform
import Synchronization

/// A UDP relay on loopback between clients and one port, which loses datagrams in both directions. Which ones follows
/// from a seed and the order in which they come.
package final class LossyRelay: @unchecked Sendable {
  // Sendable: descriptors and what is under the mutex; the rest is the thread's own.

  /// Where the clients send to.
  package let port: UInt16
  private let server: UInt16
  private let listening: Int32
  private let state = Mutex(State())
  private var thread: Thread?
  private let hasEnded = DispatchSemaphore(value: 0)

  private struct State {
    var loss = 0.0
    var isOver = false
    var (passed, lost) = (0, 0)
  }

  /// The part of datagrams that get lost, 0 to 1.
  package var loss: Double {
    get { state.withLock { $0.loss } }
    set { state.withLock { $0.loss = newValue } }
  }

  /// The numbers of datagrams that were passed on and lost so far.
  package var counts: (passed: Int, lost: Int) { state.withLock { ($0.passed, $0.lost) } }

  /// Starts it.
  ///
  /// - Parameter server: the port of 127.0.0.1 that it passes datagrams on to.
  package init(to server: UInt16, loss: Double = 0, seed: UInt64 = 1) throws {
    self.server = server
    port = try UDPPort.free()
    listening = try loopbackSocket(port: port)
    state.withLock { $0.loss = loss }
    let thread = Thread { [unowned self] in run(SeededGenerator(seed: seed)) }
    self.thread = thread
    thread.start()
  }

  deinit {
    state.withLock { $0.isOver = true }
    hasEnded.wait()
    close(listening)
  }

  private func run(_ generator: SeededGenerator) {
    var generator = generator
    /// A socket for each client, by the client's port.
    var upstream: [UInt16: Int32] = [:]
    var memory = [UInt8](repeating: 0, count: 65_536)
    defer {
      for socket in upstream.values { close(socket) }
      hasEnded.signal()
    }
    while !state.withLock({ $0.isOver }) {
      var list = [pollfd(fd: listening, events: Int16(POLLIN), revents: 0)]
      let clients = Array(upstream)
      list += clients.map { pollfd(fd: $0.value, events: Int16(POLLIN), revents: 0) }
      guard poll(&list, nfds_t(list.count), 100) > 0 else { continue }
      if list[0].revents != 0 {
        while let (count, client) = receive(listening, &memory) {
          if upstream[client] == nil {
            let made = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
            // What finds no room while the relay gets no processor would be lost without being counted.
            enlargeReceiveBuffer(of: made)
            upstream[client] = made
          }
          if passes(&generator), let socket = upstream[client] { send(socket, memory[..<count], to: server) }
        }
      }
      for (index, (client, socket)) in clients.enumerated() where list[index + 1].revents != 0 {
        while let (count, _) = receive(socket, &memory) {
          if passes(&generator) { send(listening, memory[..<count], to: client) }
        }
      }
    }
  }

  private func passes(_ generator: inout SeededGenerator) -> Bool {
    let number = Double.random(in: 0..<1, using: &generator)
    return state.withLock { state in
      let isLost = number < state.loss
      if isLost { state.lost += 1 } else { state.passed += 1 }
      return !isLost
    }
  }

  /// The length of the next datagram and the port that it comes from; nil where there is none.
  private func receive(_ socket: Int32, _ memory: inout [UInt8]) -> (Int, UInt16)? {
    var sender = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let count = withUnsafeMutablePointer(to: &sender) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        recvfrom(socket, &memory, memory.count, Int32(MSG_DONTWAIT), $0, &size)
      }
    }
    return count >= 0 ? (count, UInt16(bigEndian: sender.sin_port)) : nil
  }

  private func send(_ socket: Int32, _ bytes: ArraySlice<UInt8>, to port: UInt16) {
    bytes.withUnsafeBytes { bytes in
      _ = withLoopbackAddress(port) { sendto(socket, bytes.baseAddress, bytes.count, 0, $0, $1) }
    }
  }
}
