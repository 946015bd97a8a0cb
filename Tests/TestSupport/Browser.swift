import Foundation

/// Chromium, without a window, driven through chromedriver (W3C WebDriver).
package final class Browser {
  /// An answer of chromedriver that is an error.
  package struct Complaint: Error, CustomStringConvertible {
    /// The failure, in words.
    package let description: String
  }

  private let directory: TemporaryDirectory
  private let driver: Subprocess
  private let port: Int
  private var session = ""

  /// Starts it.
  ///
  /// - Parameters:
  ///   - options: more options of Chromium's command line.
  ///   - trusting: the file of an authority in PEM; other certificates are refused then. Without one all are accepted.
  package init(in directory: TemporaryDirectory, options: [String] = [], trusting authority: String? = nil) throws {
    self.directory = directory
    port = try TCPPort.free()
    driver = try Subprocess(
      ["chromedriver", "--port=\(port)"], in: directory, environment: ["HOME": directory.url.path])
    let isThere = eventually(within: 60) { (try? request("GET", "/status")) != nil }
    guard isThere else { throw Complaint(description: "chromedriver does not answer: \(driver.errorSoFar)") }
    if let authority {
      let store = "sql:\(directory.path(".pki/nssdb"))"
      try FileManager.default.createDirectory(atPath: directory.path(".pki/nssdb"), withIntermediateDirectories: true)
      for words in [["-N", "--empty-password"], ["-A", "-t", "C,,", "-n", "authority", "-i", authority]] {
        let result = try Subprocess.run(["certutil", "-d", store] + words, in: directory)
        guard result.status == 0 else { throw Complaint(description: "certutil: \(result.error)") }
      }
    }
    let arguments =
      [
        "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--mute-audio", "--window-size=420,800", "--disable-dev-shm-usage",
        "--user-data-dir=\(directory.path("chromium"))",
      ] + options + (authority == nil ? ["--ignore-certificate-errors"] : [])
    let capabilities: [String: Any] = [
      "browserName": "chrome", "goog:chromeOptions": ["args": arguments, "binary": "/usr/bin/chromium"],
      "goog:loggingPrefs": ["browser": "ALL"], "acceptInsecureCerts": authority == nil,
    ]
    let made = try request("POST", "/session", ["capabilities": ["alwaysMatch": capabilities]])
    session = try Self.found((made as? [String: Any])?["sessionId"] as? String)
  }

  deinit {
    _ = try? request("DELETE", "/session/\(session)")
    driver.send(SIGTERM)
    _ = try? driver.wait(limit: 30)
  }

  private func request(_ method: String, _ path: String, _ body: [String: Any]? = nil) throws -> Any {
    var arguments = ["curl", "-sS", "--max-time", "120", "-X", method, "http://127.0.0.1:\(port)\(path)"]
    if let body {
      let file = directory.path("request-\(UUID().uuidString)")
      try JSONSerialization.data(withJSONObject: body).write(to: URL(fileURLWithPath: file))
      arguments += ["-H", "Content-Type: application/json", "--data-binary", "@\(file)"]
    }
    let answer = try Subprocess.run(arguments, in: directory)
    guard answer.status == 0 else { throw Complaint(description: answer.error) }
    let object = try JSONSerialization.jsonObject(with: answer.output) as? [String: Any]
    let value = object?["value"] ?? NSNull()
    if let value = value as? [String: Any], let error = value["error"] {
      throw Complaint(description: "\(error): \(value["message"] ?? "")")
    }
    return value
  }

  /// Runs a script in each page from now on, before the page's own.
  package func inject(_ script: String) throws {
    try command("Page.enable")
    try command("Page.addScriptToEvaluateOnNewDocument", ["source": script])
  }

  /// Sends a command of the DevTools protocol.
  @discardableResult
  package func command(_ name: String, _ parameters: [String: Any] = [:]) throws -> Any {
    try request("POST", "/session/\(session)/goog/cdp/execute", ["cmd": name, "params": parameters])
  }

  /// The value of an answer that has to be there.
  private static func found<Value>(_ value: Value?) throws -> Value {
    guard let value else { throw Complaint(description: "chromedriver's answer lacks what was asked for") }
    return value
  }

  /// Opens a page.
  package func open(_ url: String) throws { _ = try request("POST", "/session/\(session)/url", ["url": url]) }

  /// Runs the body of a function in the page, with `arguments`; the value that it returns.
  @discardableResult
  package func run(_ script: String, _ arguments: [Any] = []) throws -> Any {
    try request("POST", "/session/\(session)/execute/sync", ["script": script, "args": arguments])
  }

  /// The number that an expression has in the page; nil where it has none.
  package func number(_ expression: String) -> Double? {
    ((try? run("return \(expression)")) as? NSNumber)?.doubleValue
  }

  /// The text that an expression has in the page.
  package func text(_ expression: String) -> String? { (try? run("return \(expression)")) as? String }

  /// Returns `true` if an expression is true in the page.
  package func isTrue(_ expression: String) -> Bool { (try? run("return !!(\(expression))")) as? Bool ?? false }

  /// Acts on the element that a selector finds, once the page has it and lets it be touched.
  private func act(_ action: String, _ body: [String: Any], using kind: String, _ selector: String) throws {
    var complaint: (any Error)?
    let isDone = eventually {
      do {
        let found = try request("POST", "/session/\(session)/element", ["using": kind, "value": selector])
        let element = try Self.found((found as? [String: String])?.values.first)
        _ = try request("POST", "/session/\(session)/element/\(element)/\(action)", body)
        return true
      } catch {
        complaint = error
        return false
      }
    }
    if !isDone, let complaint { throw complaint }
  }

  /// Clicks on the button with this text, as a finger would: what a browser allows after a touch alone is allowed.
  package func click(_ text: String) throws {
    try act("click", [:], using: "xpath", "//button[contains(normalize-space(.), \"\(text)\")]")
  }

  /// Types into the field with this name.
  package func type(_ text: String, into name: String) throws {
    try act("value", ["text": text], using: "css selector", "input[name=\(name)]")
  }

  /// Writes what the window shows as PNG.
  package func screenshot(to path: String) throws {
    let text = try request("GET", "/session/\(session)/screenshot") as? String
    try Self.found(text.flatMap { Data(base64Encoded: $0) }).write(to: URL(fileURLWithPath: path))
  }

  /// The lines of the page's console since the last call.
  package func console() throws -> [String] {
    let lines = try request("POST", "/session/\(session)/se/log", ["type": "browser"]) as? [[String: Any]]
    return (lines ?? []).compactMap { $0["message"] as? String }
  }

  /// The text that the page shows.
  package var page: String { text("document.body.innerText") ?? "" }

  /// The number that the test picture shows: in the video, or in the image of pictures that come one by one.
  package func pictureNumber(in element: String = "video") -> Double? {
    number("readNumber(document.querySelector('.picture \(element)'))")
  }

  /// The alarm's peak and loudest frequency, as the loudspeaker gets it.
  package var alarm: (peak: Double, frequency: Double) { heard("hear(window.alarmAnalyser)") }

  /// The camera's sound, as the page plays it.
  package var sound: (peak: Double, frequency: Double) { heard("hearCamera()") }

  private func heard(_ expression: String) -> (peak: Double, frequency: Double) {
    let value = (try? run("return \(expression)")) as? [String: Any]
    return ((value?["peak"] as? NSNumber)?.doubleValue ?? 0, (value?["frequency"] as? NSNumber)?.doubleValue ?? 0)
  }

  /// Returns `true` if the alarm is heard within `limit` seconds: one of its two tones, loud.
  package func alarmSounds(within limit: Double = 50) -> Bool {
    eventually(within: limit) {
      let (peak, frequency) = alarm
      return peak > 0.3 && [660, 880].contains { abs(frequency - $0) < 10 }
    }
  }

  /// The pictures that the page has played.
  package var pictures: Double {
    number("document.querySelector('video').getVideoPlaybackQuality().totalVideoFrames") ?? 0
  }
}
