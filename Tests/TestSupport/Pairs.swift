/// Pairs of two lists' values: in `make check-long` every one, otherwise as many as have each value at least once.
package func pairs<First, Second>(_ first: [First], _ second: [Second]) -> [(First, Second)] {
  guard runsLong else {
    return (0..<max(first.count, second.count)).map { (first[$0 % first.count], second[$0 % second.count]) }
  }
  return first.flatMap { one in second.map { (one, $0) } }
}
