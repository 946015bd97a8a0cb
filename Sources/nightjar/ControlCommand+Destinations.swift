import Appliance
import ArgumentParser
import Serving
import Streaming

extension ControlCommand {
  struct AddCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "add", abstract: "Add a destination, which gets the stream from the next key frame.")

    @Argument(
      help: "rtp://HOST:PORT, with parameters as for nightjar stream --to.", transform: SettingValues.destination)
    var destination: StreamDestination

    @Option(help: ArgumentHelp("Write the session description for the players to this file.", valueName: "file"))
    var sdp: String?

    @OptionGroup var stream: Stream

    func run() throws {
      // A key that is made for the destination shows only in the description, and only once.
      if let protection = destination.protection, protection.keyFile == nil, sdp == nil, !stream.json {
        throw ValidationError("\(destination): add --sdp FILE, from which its players read the key, or give a key-file")
      }
      try stream.ask { client in
        let file = try sdp.map { try OutputFile(checking: $0, isSecret: destination.protection != nil) }
        let answer = try client.addDestination(destination.description)
        try file?.write(answer.value)
        let needsDescription = destination.payload.needsDescription && sdp == nil
        let advice =
          "Players of \(destination.payload.title) need its session description: remove it, and add it with --sdp FILE.\n"
        try stream.write(answer, "streaming to \(destination)\n" + (needsDescription ? advice : ""))
      }
    }
  }

  struct RemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "remove", abstract: "Remove a destination; nightjar ctl status lists them.")

    @Argument(help: "rtp://HOST:PORT, with its parameters.", transform: SettingValues.destination)
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
