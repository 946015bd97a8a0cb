// What the marks of a frame's way cost: nanoseconds a frame of the thread's processor time, with nobody listening, and with a
// trace that is written to a file.
//
//   trace-cost [FRAMES]
import CTracing
import Glibc
import Media
import Platform
import Streaming

/// The thread's processor time in nanoseconds.
func processorTime() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
}

/// All that is marked of a frame that is converted, encoded and sent to one stream.
func mark(_ frame: Int64) {
  nightjar_frame_captured(frame, 1, 2)
  nightjar_convert_end(frame, nightjar_convert_begin(frame))
  nightjar_frame_waiting(frame, 1, 2, 3)
  nightjar_encode_end(frame, nightjar_encode_begin(frame), 10_000, 0)
  nightjar_packetize_end(frame, nightjar_packetize_begin(frame), 9)
  nightjar_send_end(frame, nightjar_send_begin(frame), 9)
  nightjar_frame_sent(frame, 1, 4)
}

/// The median of rounds of 512 frames, which a ring has room for.
func measure(_ rounds: Int, pause: Bool) -> Double {
  let times = (0..<rounds).map { round in
    if pause { usleep(150_000) }
    let start = processorTime()
    for frame in 0..<512 { mark(Int64(round * 512 + frame + 1)) }
    return (processorTime() - start) / 512
  }
  return times.sorted()[rounds / 2]
}

let rounds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 20
guard nightjar_has_probes() == 1 else { fatalError("built without <sys/sdt.h>: install systemtap-sdt-dev") }
func rounded(_ value: Double) -> Double { (value * 10).rounded() / 10 }
print("| what listens | ns a frame |\n|---|---|")
print("| nobody | \(rounded(measure(rounds * 500, pause: false))) |")
let path = "/tmp/trace-cost.\(getpid()).json"
let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
let recorder = try TraceRecorder(FileDescriptor(owning: descriptor), limit: 100_000_000)
let traced = CameraTrace(recorder: recorder).follow(thread: "nj-capture") { measure(rounds, pause: true) }
recorder.end()
unlink(path)
print("| --trace | \(rounded(traced)) |")
for event in recorder.takeEvents() { print(event) }
