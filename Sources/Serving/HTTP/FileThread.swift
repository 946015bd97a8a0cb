import Platform

/// Runs `work` on a thread of its own: the file system may take its time, and Swift's threads are few.
func onThread<Value: Sendable>(
  _ work: @escaping @Sendable () throws -> Value
) async throws -> Value {
  let answer = OneAnswer<Value>()
  return try await withTaskCancellationHandler {
    try await withCheckedThrowingContinuation { continuation in
      answer.wait(continuation)
      do {
        try NamedThread("nj-events") { answer.give(Result { try work() }) }.detach()
      } catch {
        answer.give(.failure(error))
      }
    }
  } onCancel: {
    answer.give(.failure(CancellationError()))
  }
}
