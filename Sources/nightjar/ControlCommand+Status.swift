import Appliance
import ArgumentParser
import Glibc
import Platform
import Serving

extension ControlCommand {
  struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "status", abstract: "Show the state of the stream.",
      discussion: "--watch updates it every second, until Ctrl-C. --watch --json prints one line a second.")

    @Flag(help: "Update it every second.")
    var watch = false

    @OptionGroup var stream: Stream

    func run() throws {
      if watch {
        signal(SIGPIPE, SIG_IGN)
        return try reportingFailures {
          var view = StatusWatch(stream)
          try view.run()
        }
      }
      try stream.ask { client in
        if let camera = stream.camera {
          let answer = try client.status(of: camera)
          try stream.write(answer, StatusText.text(answer.value))
        } else {
          let answer = try client.status()
          try stream.write(answer, StatusText.text(answer.value))
        }
      }
    }
  }

  struct ViewersCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "viewers", abstract: "List who receives the stream, and what is lost.")

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.tell {
        try $0.viewers()
      } _: { answer in
        guard !answer.viewers.isEmpty else { return "nobody is watching\n" }
        let isOne = Set(answer.viewers.map(\.camera)).count == 1
        return answer.viewers.flatMap { viewer in
          let label = isOne ? "" : "\(viewer.camera): "
          var lines =
            switch viewer.kind {
            case "mjpeg", "snapshot": [StatusText.pictureLine(of: viewer.delivery, label: label)]
            case "mp3": [StatusText.listenerLine(of: viewer.delivery, label: label)]
            default: StatusText.lines(of: viewer.delivery, label: label, indent: "  ")
            }
          if let seconds = viewer.seconds {
            lines[0] += "; for " + StatusDisplay.clock(Duration(seconds: seconds))
          }
          return lines
        }.map { $0 + "\n" }.joined()
      }
    }
  }
}
