import CLinux
import Glibc
import Platform
import Synchronization

/// A driver's buffer as a DMA-BUF (`VIDIOC_EXPBUF`), until the value ends. The buffer itself lives as long as any
/// importer keeps it.
struct ExportedBuffer: ~Copyable {
  /// The descriptor of the exported buffer, close-on-exec and read-only.
  var descriptor: CInt { file.number }
  private let file: FileDescriptor
  /// An identifier that is unique among all buffers this process ever exported.
  let identifier: UInt64

  private static let lastIdentifier = Atomic<UInt64>(0)

  /// Exports plane `plane` of buffer `index`. Returns nil if the driver does not export, or if no descriptor is left.
  init?(device: V4L2Device, index: Int, plane: Int) {
    var argument = v4l2_exportbuffer()
    argument.type = device.bufferType
    argument.index = UInt32(index)
    argument.plane = UInt32(plane)
    // An encoder only reads: no holder of the descriptor shall write to the driver's memory.
    argument.flags = UInt32(O_CLOEXEC | O_RDONLY)
    argument.fd = -1
    guard device.control(nightjar_VIDIOC_EXPBUF, &argument) == 0, argument.fd >= 0 else { return nil }
    file = FileDescriptor(owning: argument.fd)
    identifier = Self.lastIdentifier.wrappingAdd(1, ordering: .relaxed).newValue
  }
}
