import FoundationEssentials
import Glibc
import TestSupport
import Testing
import VAAPI

@Suite("Render nodes")
struct RenderNodeTests {
  @Test("are listed by their numbers, and nothing else is") func listing() throws {
    let directory = try TemporaryDirectory()
    for name in ["renderD129", "renderD128", "card0", "renderD", "renderDx", "by-path"] {
      close(open(directory.url.path + "/" + name, O_CREAT | O_WRONLY, 0o600))
    }
    #expect(
      RenderNode.all(in: directory.url.path).map(\.path)
        == [directory.url.path + "/renderD128", directory.url.path + "/renderD129"])
  }

  @Test("are none where there is no directory") func none() {
    #expect(RenderNode.all(in: "/nonexistent/dri").isEmpty)
  }
}
