import Appliance
import Testing

@Suite struct ConfigurationTextTests {
  private static func set(_ options: [(String, String)], in text: String) -> String {
    var edited = ConfigurationText(text)
    for (option, value) in options { edited.set(option, to: value) }
    return edited.text
  }

  @Test func `an option is set where it stands, else where a comment shows it, else above the tables`() {
    #expect(Self.set([("https", "true")], in: "https = false # now\n") == "https = true\n")
    #expect(Self.set([("https", "true")], in: "  https=false\n#https = 1\n") == "https = true\n#https = 1\n")
    #expect(Self.set([("https", "true")], in: "# The page.\n#https = true\n") == "# The page.\nhttps = true\n")
    #expect(Self.set([("https", "true")], in: "# https = maybe\n") == "https = true\n# https = maybe\n")
    #expect(Self.set([("https", "true")], in: "https-port = 1\n") == "https-port = 1\nhttps = true\n")
    #expect(Self.set([("rtsp", "true"), ("https", "true")], in: "") == "rtsp = true\nhttps = true\n")
    // A camera's table is not the host's.
    #expect(
      Self.set([("https", "true")], in: "rtsp = true\n\n# The first.\n[[camera]]\nhttps = 1\n")
        == "rtsp = true\nhttps = true\n\n# The first.\n[[camera]]\nhttps = 1\n")
    #expect(Self.set([("https", "true")], in: "[[camera]]\n") == "https = true\n[[camera]]\n")
  }

  @Test func `an option of the camera is set in the first table`() {
    var text = ConfigurationText("rtsp = true\n[[camera]]\nname = 'a'\n\n[[camera]]\nsource = 'x'\n")
    text.setOfFirstCamera("source", to: "'y'")
    #expect(text.text == "rtsp = true\n[[camera]]\nname = 'a'\nsource = 'y'\n\n[[camera]]\nsource = 'x'\n")
    text = ConfigurationText("rtsp = true")
    text.setOfFirstCamera("source", to: "'y'")
    #expect(text.text == "rtsp = true\nsource = 'y'\n")
  }

  @Test(arguments: [false, true])
  func `the example stays a file without a mistake`(forService: Bool) throws {
    var text = ConfigurationText(ExampleConfiguration.text(forService: forService))
    for option in ["rtsp", "https", "announce"] { text.set(option, to: "true") }
    text.setOfFirstCamera("source", to: #""/dev/v4l/by-id/usb-046d_HD_Pro_Webcam-video-index0""#)
    let file = try ConfigurationFile(parsing: Array(text.text.utf8), path: "file", options: OptionTable.stream)
    #expect(file.settings["https"]?.value == .flag(true) && file.settings["announce"]?.value == .flag(true))
    let camera = file.cameras.first?.settings ?? file.settings
    #expect(camera["source"]?.text == "/dev/v4l/by-id/usb-046d_HD_Pro_Webcam-video-index0")
  }
}
