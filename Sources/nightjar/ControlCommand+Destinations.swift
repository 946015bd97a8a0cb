import ArgumentParser
import Control
import Media
import Streaming

extension ControlCommand {
  struct AddCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "add", abstract: "Send the stream to one more destination, from the next key frame on.")

    @Argument(help: "As --to of nightjar stream: rtp://HOST:PORT, with options.", transform: OptionValues.destination)
    var destination: StreamDestination

    @Option(help: ArgumentHelp("Write the session description for its players to this file.", valueName: "file"))
    var sdp: String?

    @OptionGroup var stream: Stream

    func run() throws {
      // The description is the only place where a key that is made for it shows, and that once.
      if let protection = destination.protection, protection.keyFile == nil, sdp == nil, !stream.json {
        throw ValidationError("\(destination): add --sdp FILE, from which its players read the key, or give a key-file")
      }
      try stream.ask { client in
        let file = try sdp.map { try OutputFile(checking: $0, isSecret: destination.protection != nil) }
        let answer = try client.addDestination(destination.description)
        try file?.write(answer.value)
        let needsDescription = destination.payload == .h264 && sdp == nil
        try stream.write(
          answer,
          "streaming to \(destination)\n"
            + (needsDescription
              ? "Players of H.264 need its session description: remove it, and add it with --sdp FILE.\n" : ""))
      }
    }
  }

  struct RemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "remove", abstract: "End the stream to a destination, as nightjar ctl status names it.")

    @Argument(help: "rtp://HOST:PORT, with its options.", transform: OptionValues.destination)
    var destination: StreamDestination

    @OptionGroup var stream: Stream

    func run() throws {
      try stream.tell {
        try $0.removeDestination(destination.description)
      } _: {
        "no longer streaming to \(destination)\n"
      }
    }
  }
}
