import CFuzzer
import Glibc

/// All fuzzers in one program, so that there is one to compile and to link. The name that it is started by says which one runs:
/// `run` makes a link for each.
@main enum FuzzProgram {
  private static let fuzzers: [String: @Sendable (UnsafeRawBufferPointer) -> Void] = [
    "FuzzAnnexB": { FuzzAnnexB.take($0) },
    "FuzzConfiguration": { FuzzConfiguration.take(Array($0)) },
    "FuzzCredentials": { FuzzCredentials.take(Array($0)) },
    "FuzzDecoder": { FuzzDecoder.take($0) },
    "FuzzHEVCPackets": { FuzzHEVCPackets.take($0) },
    "FuzzHEVCSets": { FuzzHEVCSets.take($0) },
    "FuzzKeys": { FuzzKeys.take($0) },
    "FuzzNetwork": { FuzzNetwork.take($0) },
    "FuzzPassedStream": { FuzzPassedStream.take($0) },
    "FuzzPeers": { FuzzPeers.take($0) },
    "FuzzRTCP": { FuzzRTCP.take($0) },
    "FuzzRTSPClient": { FuzzRTSPClient.take($0) },
    "FuzzRTSPInterleaved": { FuzzRTSPInterleaved.take($0) },
    "FuzzRTSPRequest": { FuzzRTSPRequest.take($0) },
    "FuzzRTSPSession": { FuzzRTSPSession.take($0) },
    "FuzzRTSPTransport": { FuzzRTSPTransport.take($0) },
    "FuzzRTSPURL": { FuzzRTSPURL.take($0) },
    "FuzzSTUN": { FuzzSTUN.take($0) },
    "FuzzSessionOffer": { FuzzSessionOffer.take($0) },
    "FuzzTLS": { FuzzTLS.take($0) },
  ]

  private static let chosen: @Sendable (UnsafeRawBufferPointer) -> Void = {
    let name = CommandLine.arguments[0].split(separator: "/").last.map { String($0) } ?? ""
    guard let fuzzer = fuzzers[name] else {
      print("\(name) is none of \(fuzzers.keys.sorted().joined(separator: ", "))")
      exit(64)
    }
    return fuzzer
  }()

  static func main() {
    _ = chosen
    var count = CommandLine.argc
    var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
    exit(
      LLVMFuzzerRunDriver(&count, &arguments) { data, size in
        FuzzProgram.chosen(UnsafeRawBufferPointer(start: data, count: size))
        return 0
      })
  }
}
