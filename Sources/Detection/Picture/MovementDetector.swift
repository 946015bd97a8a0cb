/// The sensitivity of the movement detector.
package enum MovementSensitivity: String, CaseIterable, Hashable, Sendable {
  /// A person who walks through the room.
  case low
  /// A child that turns over.
  case medium
  /// A hand that moves.
  case high

  /// The multiple of a cell's own noise, and the least change of its brightness, at which the cell has changed.
  fileprivate var limits: (noise: Float, least: Float) {
    switch self {
    case .low: (10, 8)
    case .medium: (6, 5)
    case .high: (4, 3)
    }
  }

  /// The changed cells that make movement, of 3600.
  fileprivate var cells: Int {
    switch self {
    case .low: 24
    case .medium: 10
    case .high: 5
    }
  }
}

/// A rectangle of the picture that the movement detector does not look at, in parts of the camera's picture, 0…1.
package struct MovementMask: Hashable, Sendable {
  /// The left and upper edge, and the size.
  package let (x, y, width, height): (Double, Double, Double, Double)

  /// Creates a mask; nil if it is empty or not within the picture.
  package init?(x: Double, y: Double, width: Double, height: Double) {
    let isWithin = x >= 0 && y >= 0 && width > 0 && height > 0 && x + width <= 1.0001 && y + height <= 1.0001
    guard isWithin else { return nil }
    (self.x, self.y, self.width, self.height) = (x, y, width, height)
  }

  /// Returns `true` if the middle of a cell is within.
  fileprivate func hides(column: Int, row: Int) -> Bool {
    let (middleX, middleY) = (
      (Double(column) + 0.5) / Double(LumaGrid.columns), (Double(row) + 0.5) / Double(LumaGrid.rows)
    )
    return (x...x + width).contains(middleX) && (y...y + height).contains(middleY)
  }
}

/// A detector of movement: cells of the picture that differ both from a background that adapts and from the picture before,
/// by more than their own noise. A change of most of the picture at once is one of the light, and no movement.
/// Allocates at its creation only.
package struct MovementDetector: ~Copyable {
  /// The settings of the detector.
  package struct Settings: Hashable, Sendable {
    /// The sensitivity.
    package var sensitivity: MovementSensitivity
    /// The parts of the picture that do not count.
    package var masks: [MovementMask]

    /// Creates settings.
    package init(sensitivity: MovementSensitivity = .medium, masks: [MovementMask] = []) {
      (self.sensitivity, self.masks) = (sensitivity, masks)
    }
  }

  /// The most pictures a second that the detector should get.
  package static let rate = 5.0
  /// The seconds for which movement goes on after its last moment.
  private static let hold = 3.0
  /// The number of grids until the background is known.
  private static let learningGrids = 10
  /// The number of grids after a change of the light in which nothing is movement: the camera's exposure follows.
  private static let lightGrids = 8
  /// The part of all cells that no movement changes at once, and the change of most cells that only the light makes.
  private static let (lightPart, lightShift): (Float, Float) = (0.35, 2.5)
  private static let noiseFloor: Float = 0.3

  private let settings: Settings
  private let background: UnsafeMutablePointer<Float>
  private let noise: UnsafeMutablePointer<Float>
  private let former: UnsafeMutablePointer<Float>
  /// 1 for a cell that counts, 0 for a masked one.
  private let counts: UnsafeMutablePointer<UInt8>
  /// 1 for a cell that has changed, with a row and a column of zeros around.
  private let changed: UnsafeMutablePointer<UInt8>
  private let histogram: UnsafeMutablePointer<Int32>
  private let counted: Int
  private var gridCount = 0
  private var lightGrids = 0
  private var recent = 0
  private var begun: Double?
  private var lastMoved = 0.0

  /// The changed cells of the last picture that count.
  package private(set) var cells = 0

  /// Creates a detector that has not seen anything.
  package init(_ settings: Settings) {
    self.settings = settings
    func zeros(_ count: Int) -> UnsafeMutablePointer<Float> {
      let memory = UnsafeMutablePointer<Float>.allocate(capacity: count)
      memory.initialize(repeating: 0, count: count)
      return memory
    }
    (background, noise, former) = (zeros(LumaGrid.count), zeros(LumaGrid.count), zeros(LumaGrid.count))
    counts = .allocate(capacity: LumaGrid.count)
    let padded = (LumaGrid.columns + 2) * (LumaGrid.rows + 2)
    changed = .allocate(capacity: padded)
    changed.initialize(repeating: 0, count: padded)
    histogram = .allocate(capacity: 256)
    histogram.initialize(repeating: 0, count: 256)
    var counted = 0
    for row in 0..<LumaGrid.rows {
      for column in 0..<LumaGrid.columns {
        let isHidden = settings.masks.contains { $0.hides(column: column, row: row) }
        (counts + row * LumaGrid.columns + column).initialize(to: isHidden ? 0 : 1)
        if !isHidden { counted += 1 }
      }
    }
    self.counted = counted
  }

  deinit {
    for memory in [background, noise, former] { memory.deallocate() }
    counts.deallocate()
    changed.deallocate()
    histogram.deallocate()
  }

  /// The time since which something has moved; nil if nothing moves.
  package var since: Double? { begun }
  /// The confidence that something moves, 0…1: more cells give more.
  package var confidence: Double { min(0.99, 0.5 + 0.1 * Double(cells) / Double(settings.sensitivity.cells)) }

  /// Notes a measured picture at `time`, in seconds of any clock.
  package mutating func note(_ grid: borrowing LumaGrid, at time: Double) {
    defer { former.update(from: grid.cells, count: LumaGrid.count) }
    gridCount += 1
    guard gridCount > Self.learningGrids else {
      learn(grid)
      cells = 0
      return
    }
    let shift = shift(grid)
    let share = compare(grid, shift: shift)
    if abs(shift) > Self.lightShift || share > Self.lightPart {
      lightGrids = Self.lightGrids
      recent = 0
    }
    if lightGrids > 0 {
      lightGrids -= 1
      // The light's own background, at once.
      background.update(from: grid.cells, count: LumaGrid.count)
      cells = 0
    } else {
      adapt(grid)
      recent = (recent << 1 | (cells >= settings.sensitivity.cells ? 1 : 0)) & 7
    }
    if recent.nonzeroBitCount >= 2 {
      if begun == nil { begun = time }
      lastMoved = time
    } else if begun != nil, time - lastMoved > Self.hold {
      begun = nil
    }
  }

  private func learn(_ grid: borrowing LumaGrid) {
    let part = 1 / Float(gridCount)
    for index in 0..<LumaGrid.count {
      background[index] += part * (grid.cells[index] - background[index])
      if gridCount > 1 {
        noise[index] += (abs(grid.cells[index] - former[index]) - noise[index]) / Float(gridCount - 1)
      }
    }
  }

  /// Returns the median of the cells' distances from the background, in steps of half a unit: −64…63.5.
  private func shift(_ grid: borrowing LumaGrid) -> Float {
    histogram.update(repeating: 0, count: 256)
    for index in 0..<LumaGrid.count {
      let step = Int(2 * (grid.cells[index] - background[index])) + 128
      histogram[max(0, min(255, step))] += 1
    }
    var sum: Int32 = 0
    for step in 0..<256 {
      sum += histogram[step]
      if 2 * sum >= Int32(LumaGrid.count) { return Float(step - 128) / 2 }
    }
    return 0
  }

  /// Marks the changed cells; returns the share of cells that differ from the background.
  private mutating func compare(_ grid: borrowing LumaGrid, shift: Float) -> Float {
    let limits = settings.sensitivity.limits
    var different = 0
    let stride = LumaGrid.columns + 2
    for row in 0..<LumaGrid.rows {
      for column in 0..<LumaGrid.columns {
        let index = row * LumaGrid.columns + column
        let value = grid.cells[index]
        let limit = max(limits.least, limits.noise * max(noise[index], Self.noiseFloor))
        let isDifferent = abs(value - background[index] - shift) > limit
        if isDifferent { different += 1 }
        // What stands still has arrived: only what differs from the picture before moves.
        let isMoving = isDifferent && abs(value - former[index]) > 0.5 * limit && counts[index] == 1
        changed[(row + 1) * stride + column + 1] = isMoving ? 1 : 0
      }
    }
    var moving = 0
    for row in 1...LumaGrid.rows {
      for column in 1...LumaGrid.columns {
        let place = row * stride + column
        guard changed[place] == 1 else { continue }
        // A single cell is noise, such as a hot pixel or a reflection.
        let beside = changed[place - 1] + changed[place + 1] + changed[place - stride] + changed[place + stride]
        if beside > 0 { moving += 1 }
      }
    }
    cells = moving
    return Float(different) / Float(LumaGrid.count)
  }

  /// Lets the background follow: soon where nothing has changed, slowly where something has.
  private func adapt(_ grid: borrowing LumaGrid) {
    let stride = LumaGrid.columns + 2
    for row in 0..<LumaGrid.rows {
      for column in 0..<LumaGrid.columns {
        let index = row * LumaGrid.columns + column
        let value = grid.cells[index]
        let isMoving = changed[(row + 1) * stride + column + 1] == 1
        background[index] += (isMoving ? 0.01 : 0.05) * (value - background[index])
        if !isMoving { noise[index] += 0.05 * (abs(value - former[index]) - noise[index]) }
      }
    }
  }
}
