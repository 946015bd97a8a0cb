import Platform
import Sound
import Testing

/// The names of sound devices that `--audio` takes, and those that it does not let through to alsa-lib.
@Suite struct SoundDeviceNameTests {
  @Test(arguments: [
    "hw", "hw:0", "hw:1,0", "hw:CARD=C920", "hw:CARD=C920,DEV=0", "hw:CARD=Loopback,DEV=1,SUBDEV=0", "plughw:1",
    "default", "sysdefault:CARD=U0x46d0x825", "dsnoop:CARD=Mic_1,DEV=0", "pipewire", "null", "my-mic_2", "plug:dsnoop",
    "filed", String(repeating: "m", count: 128),
  ])
  func `the name of a device is taken`(text: String) throws {
    #expect(try SoundDeviceName(text).text == text)
  }

  @Test(arguments: [
    // alsa-lib would write a file.
    "file:x", "tee:null,x", "plug:file:x", "plug:SLAVE=file:x", "pcm.file:x", "pcm.tee:null,x", "file", "tee",
    "plug:tee:hw,x", "dmix.x:file:y",
    // Or run a program, or read a piece of its configuration.
    "plug:'file:|id'", "plug:{type file file /x slave.pcm null}", "{type hw}", "hw:0;id", "file:|id", "'; rm", "hw:0\"",
    "|sh", "a b", "plug:\"hw:0\"",
    "hw:CARD=../../x", "hw:CARD=$(id)", "hw:0 ", " hw:0", "hw:0\n", "hw:\u{1B}[2J", "hw:\u{0}", "hw:ü", "", ":", ":0",
    "hw::", String(repeating: "m", count: 129), "hw:" + String(repeating: "0", count: 100_000),
  ])
  func `what is no name of a device is refused, in one line without control characters`(text: String) throws {
    let error = #expect(throws: SoundError.self) { try SoundDeviceName(text) }
    let words = try #require(error).description
    #expect(words.unicodeScalars.allSatisfy { (" "..."~").contains($0) } && words.count < 300, "\(words)")
    #expect(error?.kind == .usage)
  }

  @Test func `a name leads to the card with that number or short name, and to no other`() throws {
    func leads(_ text: String, _ number: Int, _ id: String, _ device: Int) throws -> Bool {
      try SoundDeviceName(text).leads(toCard: number, id: id, device: device)
    }
    for text in ["hw:2,1", "hw:C920,1", "hw:CARD=C920,DEV=1", "plughw:DEV=1,CARD=2", "hw:2,1,0"] {
      #expect(try leads(text, 2, "C920", 1), "\(text)")
      #expect(try !leads(text, 1, "Other", 1) && !leads(text, 2, "C920", 0), "\(text)")
    }
    #expect(try leads("hw", 0, "Mic", 0) && leads("default", 0, "Mic", 0) && leads("hw:CARD=Mic", 0, "Mic", 0))
    for text in ["null", "pipewire", "plug:dsnoop", "hw:,", "hw:CARD=,DEV="] {
      #expect(try !leads(text, 1, "Mic", 0), "\(text)")
    }
  }

  @Test func `a card's own channels come from the names that open a card`() throws {
    for text in ["hw", "hw:1", "plughw:CARD=C920", "default", "sysdefault:1"] {
      #expect(try SoundDeviceName(text).isCard)
    }
    for text in ["null", "pipewire", "my-mic_2", "plug:dsnoop"] { #expect(try !SoundDeviceName(text).isCard) }
  }

  @Test func `a hardware device is opened through the conversion of formats`() throws {
    for (text, converting) in [("hw", "plughw"), ("hw:1", "plughw:1"), ("plughw:1", "plughw:1"), ("null", "null")] {
      #expect(try SoundDeviceName(text).converting == converting)
    }
  }
}
