import Foundation
import Platform
import TestSupport
import Testing

/// Files as sysfs has them.
@Suite struct AttributeFileTests {
  @Test(
    arguments: [
      ("45000\n", 45000), ("-12500\n", -12500), ("0\n", 0), ("7", 7), ("9223372036854775807\n", Int.max),
      ("-9223372036854775808\n", Int.min), ("12\n34\n", 12), ("9223372036854775808\n", nil), ("-\n", nil), ("\n", nil),
      ("", nil), ("12 34\n", nil), ("4x\n", nil), ("x\n", nil), ("123456789012345678901234567890\n", nil),
    ] as [(String, Int?)])
  func `a number is the whole first line`(text: String, number: Int?) throws {
    let directory = try TemporaryDirectory()
    let file = directory.url.appendingPathComponent("temp")
    try Data(text.utf8).write(to: file)
    #expect(AttributeFile.integer(file.path) == number)
  }

  @Test func `a file that is not there is no number`() throws {
    let directory = try TemporaryDirectory()
    #expect(AttributeFile.integer(directory.url.appendingPathComponent("temp").path) == nil)
    #expect(AttributeFile.integer(directory.url.path) == nil)
  }
}
