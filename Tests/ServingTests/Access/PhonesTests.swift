import Foundation
import Media
import Platform
import Serving
import TestSupport
import Testing

@Suite struct PhonesTests {
  private static func phones(in directory: TemporaryDirectory) throws -> Phones {
    try Phones(path: directory.path("phones"))
  }

  @Test func `a code works once, within ten minutes, and the oldest goes for the newest`() throws {
    var codes = OneTimeCodes()
    let start = Instant.now()
    let first = codes.make(.view, at: start)
    #expect(first.utf8.count == 22 && first.utf8.allSatisfy { UserName.isAllowed($0) })
    #expect(codes.use(first + "x", at: start) == nil)
    #expect(codes.use("", at: start) == nil)
    #expect(codes.use(first, at: start) == .view)
    #expect(codes.use(first, at: start) == nil)
    let second = codes.make(.control, at: start)
    #expect(codes.use(second, at: start + Duration(seconds: 601)) == nil)
    #expect(codes.use(second, at: start) == nil)
    let all = (0...OneTimeCodes.limit).map { _ in codes.make(.control, at: start) }
    #expect(codes.use(all[0], at: start) == nil)
    for code in all.dropFirst() { #expect(codes.use(code, at: start + Duration(seconds: 599)) == .control) }
  }

  @Test func `phones outlive the program, each name once, and one that is shut out stays so`() throws {
    let directory = try TemporaryDirectory()
    let phones = try Self.phones(in: directory)
    let anna = try UserName("anna")
    let first = try phones.add(anna, code: phones.makeCode(.view))
    let second = try phones.add(anna, code: phones.makeCode(.control))
    #expect([first.name, second.name] == ["anna", "anna-2"])
    #expect(throws: PhonesError.code) { try phones.add(anna, code: "guess") }
    #expect(phones.phone(first.token)?.role == .view)
    #expect(phones.phone(second.token)?.name == (try UserName("anna-2")))
    #expect(phones.phone(first.token + "x") == nil)
    let text = try String(contentsOfFile: directory.path("phones"), encoding: .utf8)
    #expect(!text.contains(first.token) && !text.contains(second.token))

    let later = try Self.phones(in: directory)
    #expect(later.list.map(\.name) == ["anna", "anna-2"] && later.list.map(\.role) == ["view", "control"])
    try later.remove(anna)
    #expect(throws: PhonesError.unknown("anna")) { try later.remove(anna) }
    #expect(later.phone(first.token) == nil && later.phone(second.token) != nil)
    #expect(try Self.phones(in: directory).list.map(\.name) == ["anna-2"])
    #expect(later.changeCount == 1)
  }

  @Test func `there are not more phones than names for them`() throws {
    let directory = try TemporaryDirectory()
    let phones = try Self.phones(in: directory)
    let name = try UserName(String(repeating: "a", count: UserName.limit))
    for _ in 0..<Phones.limit { _ = try phones.add(name, code: phones.makeCode(.view)) }
    #expect(Set(phones.list.map(\.name)).count == Phones.limit)
    #expect(throws: PhonesError.tooMany) { try phones.add(name, code: phones.makeCode(.view)) }
  }

  @Test func `a file that others could write is refused, and the phones of before still watch`() throws {
    let directory = try TemporaryDirectory()
    let phones = try Self.phones(in: directory)
    let code = phones.makeCode(.view)
    let login = try phones.add(try UserName("anna"), code: code)
    try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: directory.path("phones"))
    #expect(throws: TokensFileError.self) { try Self.phones(in: directory) }
    #expect(throws: TokensFileError.self) { try phones.add(try UserName("bert"), code: phones.makeCode(.view)) }
    // The one from before goes on.
    #expect(phones.phone(login.token) != nil && phones.list.count == 1)
  }
}
