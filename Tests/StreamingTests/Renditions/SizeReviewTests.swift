import Platform
import Streaming
import Testing

/// The way back from pictures of half the size, which have a note every five seconds here.
@Suite struct SizeReviewTests {
  /// A review with a clock.
  private struct Course {
    var review = SizeReview(patience: .seconds(30))

    mutating func begin(isHalf: Bool, at second: Int64) {
      review.begin(isHalf: isHalf, at: Instant.zero + Duration.seconds(second))
    }

    /// Notes the same every second at which a note is due. Returns the second at which the encoder is to be made anew; nil for none.
    mutating func note(_ suffices: Bool, from first: Int64, to last: Int64) -> Int64? {
      for second in first...last {
        let now = Instant.zero + Duration.seconds(second)
        if review.isDue(at: now), review.note(suffices: suffices, at: now) { return second }
      }
      return nil
    }
  }

  @Test func `half the size ends once the processors have sufficed for half a minute, and not before`() {
    var course = Course()
    course.begin(isHalf: true, at: 0)
    // The first note is after five seconds.
    let end = course.note(true, from: 0, to: 100)
    #expect(end == 35)
  }

  @Test func `one note of too few processors begins the time anew`() {
    var course = Course()
    course.begin(isHalf: true, at: 0)
    let early = course.note(true, from: 0, to: 29)
    let missed = course.note(false, from: 30, to: 30)
    let end = course.note(true, from: 31, to: 200)
    #expect(early == nil && missed == nil && end == 65)
  }

  @Test func `the full size is not judged`() {
    var course = Course()
    course.begin(isHalf: false, at: 0)
    let end = course.note(true, from: 0, to: 1000)
    #expect(end == nil)
  }

  @Test func `after a full size that did not last, the processors must suffice for twice as long`() {
    var course = Course()
    course.begin(isHalf: true, at: 0)
    let first = course.note(true, from: 0, to: 100)
    course.begin(isHalf: false, at: 35)
    course.begin(isHalf: true, at: 100)
    let second = course.note(true, from: 100, to: 1000)
    course.begin(isHalf: false, at: 165)
    course.begin(isHalf: true, at: 200)
    let third = course.note(true, from: 200, to: 1000)
    #expect(first == 35 && second == 165 && third == 325)
  }

  @Test func `after a full size of ten minutes, half a minute suffices again`() {
    var course = Course()
    course.begin(isHalf: false, at: 0)
    course.begin(isHalf: true, at: 10)
    let early = course.note(true, from: 10, to: 70)
    course.begin(isHalf: false, at: 75)
    // Another color, for example.
    course.begin(isHalf: false, at: 400)
    course.begin(isHalf: true, at: 700)
    let end = course.note(true, from: 700, to: 2000)
    #expect(early == nil && end == 735)
  }

  @Test func `an encoder that is made anew in half the size begins the time anew`() {
    var course = Course()
    course.begin(isHalf: true, at: 0)
    let early = course.note(true, from: 0, to: 30)
    course.begin(isHalf: true, at: 31)
    let end = course.note(true, from: 31, to: 200)
    #expect(early == nil && end == 66)
  }
}
