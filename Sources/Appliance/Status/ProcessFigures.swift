import Glibc
import Platform
import Serving

/// The kernel's figures of this process, by the names that Prometheus has for every program.
struct ProcessFigures {
  private var start: Double?
  private var processorTime: Double?
  private var residentBytes: Int?
  private var virtualBytes: Int?
  private var descriptors: Int?
  private var descriptorLimit: Double?

  /// Returns the present figures; those that the kernel does not tell are missing.
  static func now() -> ProcessFigures {
    var figures = ProcessFigures()
    figures.readStatus()
    figures.descriptors = countDescriptors()
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
      figures.descriptorLimit = Double(limit.rlim_cur)
    }
    return figures
  }

  /// Writes the figures.
  func write(to text: inout MetricsText) {
    if let start { text.add(.processStart, [], start) }
    if let processorTime { text.add(.processCPU, [], processorTime) }
    if let residentBytes { text.add(.processMemory, [], residentBytes) }
    if let virtualBytes { text.add(.processVirtualMemory, [], virtualBytes) }
    if let descriptors { text.add(.processDescriptors, [], descriptors) }
    if let descriptorLimit { text.add(.processDescriptorLimit, [], descriptorLimit) }
  }

  /// Reads proc(5): fields are counted from 1, and the second, in parentheses, may hold anything.
  private mutating func readStatus() {
    guard let line = Self.contents("/proc/self/stat"), let end = line.lastIndex(of: ")") else { return }
    let fields = line[line.index(after: end)...].split(separator: " ")
    func field(_ number: Int) -> Int? { fields.count > number - 3 ? Int(fields[number - 3]) : nil }
    let ticks = Double(max(sysconf(CInt(_SC_CLK_TCK)), 1))
    if let user = field(14), let system = field(15) { processorTime = Double(user + system) / ticks }
    virtualBytes = field(23)
    residentBytes = field(24).map { $0 * sysconf(CInt(_SC_PAGESIZE)) }
    if let boot = Self.bootTime, let since = field(22) { start = boot + Double(since) / ticks }
  }

  /// The start of the host, in seconds since 1970. It is read once, so that the program's start time stays the same
  /// although the wall clock is set.
  private static let bootTime: Double? = {
    let line = contents("/proc/stat")?.split(separator: "\n").first { $0.hasPrefix("btime ") }
    return line.flatMap { Double($0.dropFirst(6)) }
  }()

  private static func countDescriptors() -> Int? {
    var count = 0
    Directory.forEachName(in: "/proc/self/fd") { _ in count += 1 }
    // Without the descriptor that is open for the directory itself.
    return count > 0 ? count - 1 : nil
  }

  private static func contents(_ path: String) -> String? {
    guard let bytes = try? FileDescriptor(path, O_RDONLY).read(upTo: 1 << 20) else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }
}
