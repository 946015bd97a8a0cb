import Foundation
import TestSupport
import Testing

/// Chromium, without a window, driven through chromedriver (W3C WebDriver).
final class Browser {
  /// An answer of chromedriver that is an error.
  struct Complaint: Error, CustomStringConvertible {
    let description: String
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
  init(in directory: TemporaryDirectory, options: [String] = [], trusting authority: String? = nil) throws {
    self.directory = directory
    port = try TCPPort.free()
    driver = try Subprocess(
      ["chromedriver", "--port=\(port)"], in: directory, environment: ["HOME": directory.url.path])
    let isThere = eventually(within: 60) { (try? request("GET", "/status")) != nil }
    try #require(isThere, "\(driver.errorSoFar)")
    if let authority {
      let store = "sql:\(directory.path(".pki/nssdb"))"
      try FileManager.default.createDirectory(atPath: directory.path(".pki/nssdb"), withIntermediateDirectories: true)
      for words in [["-N", "--empty-password"], ["-A", "-t", "C,,", "-n", "authority", "-i", authority]] {
        let result = try Subprocess.run(["certutil", "-d", store] + words, in: directory)
        try #require(result.status == 0, "\(result.error)")
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
    session = try #require((made as? [String: Any])?["sessionId"] as? String)
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

  /// Opens a page.
  func open(_ url: String) throws { _ = try request("POST", "/session/\(session)/url", ["url": url]) }

  /// Runs the body of a function in the page, with `arguments`; the value that it returns.
  @discardableResult
  func run(_ script: String, _ arguments: [Any] = []) throws -> Any {
    try request("POST", "/session/\(session)/execute/sync", ["script": script, "args": arguments])
  }

  /// The number that an expression has in the page; nil where it has none.
  func number(_ expression: String) -> Double? {
    ((try? run("return \(expression)")) as? NSNumber)?.doubleValue
  }

  /// The text that an expression has in the page.
  func text(_ expression: String) -> String? { (try? run("return \(expression)")) as? String }

  /// Whether an expression is true in the page.
  func isTrue(_ expression: String) -> Bool { (try? run("return !!(\(expression))")) as? Bool ?? false }

  /// Clicks on the button with this text, as a finger would: what a browser allows after a touch alone is allowed.
  func click(_ text: String) throws {
    let path = "//button[contains(normalize-space(.), \"\(text)\")]"
    let found =
      try request("POST", "/session/\(session)/element", ["using": "xpath", "value": path]) as? [String: String]
    let element = try #require(found?.values.first)
    _ = try request("POST", "/session/\(session)/element/\(element)/click", [:])
  }

  /// Types into the field with this name.
  func type(_ text: String, into name: String) throws {
    let found =
      try request(
        "POST", "/session/\(session)/element", ["using": "css selector", "value": "input[name=\(name)]"])
      as? [String: String]
    let element = try #require(found?.values.first)
    _ = try request("POST", "/session/\(session)/element/\(element)/value", ["text": text])
  }

  /// Writes what the window shows as PNG.
  func screenshot(to path: String) throws {
    let text = try request("GET", "/session/\(session)/screenshot") as? String
    try #require(text.flatMap { Data(base64Encoded: $0) }).write(to: URL(fileURLWithPath: path))
  }

  /// The lines of the page's console since the last call.
  func console() throws -> [String] {
    let lines = try request("POST", "/session/\(session)/se/log", ["type": "browser"]) as? [[String: Any]]
    return (lines ?? []).compactMap { $0["message"] as? String }
  }

  /// The text that the page shows.
  var page: String { text("document.body.innerText") ?? "" }

  /// The pictures that the page has played.
  var pictures: Double { number("document.querySelector('video').getVideoPlaybackQuality().totalVideoFrames") ?? 0 }
}
