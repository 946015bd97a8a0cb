extension Browser {
  /// Returns the whole text of the first element that a selector finds; nil where the page has none, or does not show it.
  package func shown(_ selector: String) -> String? {
    let script = """
      const found = document.querySelector(arguments[0]);
      return found?.checkVisibility() ? found.textContent : null;
      """
    return (try? run(script, [selector])) as? String
  }

  /// Returns the whole texts of all elements that a selector finds.
  package func shownTexts(_ selector: String) -> [String] {
    let script = "return [...document.querySelectorAll(arguments[0])].map((found) => found.textContent)"
    return (try? run(script, [selector])) as? [String] ?? []
  }

  /// The words below the camera's picture: for some seconds the answer to a touch, else what is wrong. Empty if nothing is.
  package var notice: String? { shown(".notice") }

  /// Returns the lines of the page's console since the last call that tell what its policy for contents has refused.
  package func refusedContents() throws -> [String] { try console().filter { $0.contains("Content Security Policy") } }
}
