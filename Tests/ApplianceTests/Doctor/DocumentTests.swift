import Appliance
import Foundation
import TestSupport
import Testing

/// docs/doctor.md, and what is tested of it.
@Suite struct DocumentTests {
  @Test func `the document has the table that the program prints`() throws {
    let printed = try Subprocess.run([nightjarPath, "doctor", "--lines"], in: TemporaryDirectory())
    #expect(printed.status == 0)
    #expect(printed.outputText.split(separator: "\n").count == FindingKind.allCases.count + 2)
    let document = try String(contentsOf: packageRoot.appendingPathComponent("docs/doctor.md"), encoding: .utf8)
    #expect(document.contains(printed.outputText), "docs/doctor.md: put what nightjar doctor --lines prints there")
  }

  @Test func `every problem is provoked in a test`() throws {
    var tests = ""
    for folder in ["Tests/ApplianceTests/Doctor", "Tests/RigTests"] {
      let files = try FileManager.default.contentsOfDirectory(atPath: packageRoot.appendingPathComponent(folder).path)
      for file in files where file.hasSuffix(".swift") {
        let url = packageRoot.appendingPathComponent(folder).appendingPathComponent(file)
        tests += try String(contentsOf: url, encoding: .utf8)
      }
    }
    tests += try String(contentsOf: packageRoot.appendingPathComponent("rig/service-test"), encoding: .utf8)
    for kind in FindingKind.allCases where kind.status == .problem {
      #expect(tests.contains("\"\(kind.rawValue)\""), "\(kind.rawValue) is in no test")
    }
  }

  @Test func `every warning and problem has a mend, and every key is well formed`() {
    for kind in FindingKind.allCases {
      #expect(kind.mend.isEmpty == (kind.status == .ok), "\(kind)")
      #expect(!kind.meaning.isEmpty && !kind.meaning.contains("|"))
      #expect(
        kind.rawValue.utf8.allSatisfy {
          $0 == UInt8(ascii: "-") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
        })
    }
  }
}
