import Appliance
import Media
import Testing

/// Tables of a file that are options: `[controls]`, `[camera.night.controls]`.
@Suite struct OptionTablesTests {
  private let options = OptionTable([
    .init("fps", .number, .camera(isShared: true)), .init("name", .text, .camera(isShared: false)),
    .init("controls", .table, .camera(isShared: true)), .init("night", .table, .camera(isShared: true)),
    .init("night-controls", .table, .camera(isShared: true)),
  ])

  private func parse(_ text: String) throws(ConfigurationError) -> ConfigurationFile {
    try ConfigurationFile(parsing: Array(text.utf8), path: "f", options: options)
  }

  @Test func `tables above and below cameras become the words of the command line`() throws {
    let file = try parse(
      """
      fps = 30
      [controls] # all of them
      brightness = -7
      auto_exposure = "Manual Mode"
      [night]
      from = "19:30"
      to = '06:30'
      [night.controls]
      gain = 100

      [[camera]]
      name = "a"
      [[camera]]
      name = "b"
      [camera.controls]
      white_balance_automatic = false
      [camera.night.controls]
      gain = 0x10
      """)
    let merged = try ConfigurationMerge(file: file, environment: [:], given: [], options: options).cameras
    let words = merged.map { camera in options.options.flatMap { camera.settings[$0.name]?.words ?? [] } }
    let night = ["--night=from=19:30", "--night=to=06:30"]
    #expect(
      words == [
        ["--fps=30", "--name=a", "--controls=brightness=-7", "--controls=auto_exposure=Manual Mode"] + night
          + ["--night-controls=gain=100"],
        ["--fps=30", "--name=b", "--controls=white_balance_automatic=false"] + night + ["--night-controls=gain=16"],
      ])
    #expect("\(try #require(merged[1].settings["controls"]).origin)" == "f:15")
    // What is shown can be read again.
    let shown = merged[0].settings.values.map(\.line).joined(separator: "\n")
    #expect(
      try parse(shown).settings["controls"]?.words == [
        "--controls=brightness=-7", "--controls=auto_exposure=Manual Mode",
      ])
  }

  @Test func `an empty table of a camera takes away what holds for all`() throws {
    let file = try parse("[controls]\ngain = 1\n[[camera]]\n[camera.controls]\n")
    let merged = try ConfigurationMerge(file: file, environment: [:], given: [], options: options).cameras
    #expect(merged[0].settings["controls"]?.words == [])
  }

  @Test(arguments: [
    ("[control]\n", "f:1: [control]: the only tables are [[camera]]"),
    ("[camera.controls]\ngain = 1", "write its [[camera]] above it"), ("[camera]\n", "write [[camera]]"),
    ("[a.b.c.d]\n", "the only tables are"), ("[[controls]]\ngain = 1", "the only tables are"),
    ("[controls]\ngain = 1\n[controls]\ngain = 2", "twice"), ("[controls]\ngain = 1\ngain = 2", "f:"),
    ("controls = ['gain=1']\n[controls]\ngain = 2", "f:"),
    ("[night.controls]\ngain=1\n[night-controls]\ngain=2", "twice"),
    ("[controls]\ngain = 1.5", "f:2: gain: it takes a whole number"),
    ("[controls]\ngain = ['a']", "f:2: gain: it takes"),
    ("[controls]\nGain = 1", "small letters"), ("[controls]\n\"a=b\" = 1", "small letters"),
    ("[controls]\na.b = 1", "keys within keys"), ("[controls]\ngain = {a = 1}", "no tables within tables"),
    ("[controls]\nfps = 1\n[fps]\na = 1", "the only tables are"), ("controls = 5", "a table, or texts"),
    ("[controls]\ngain = \"a\u{1}\"", "f:2"),
  ])
  func `a mistake is one line with its place`(text: String, words: String) {
    do throws(ConfigurationError) {
      let file = try parse(text)
      Issue.record("taken: \(file.settings)")
    } catch {
      #expect(error.description.contains(words), "\(error)")
    }
  }

  @Test func `in the environment it is a list`() throws {
    let settings = try EnvironmentSettings(["NIGHTJAR_NIGHT_CONTROLS": "gain=1 brightness=-2"], options: options)
    #expect(
      settings.settings["night-controls"]?.words == ["--night-controls=gain=1", "--night-controls=brightness=-2"])
  }
}
