package import Host
package import Platform
package import Serving
package import Streaming

extension CameraTable {
  /// The result of work on a camera.
  package enum Outcome: Sendable {
    /// A camera is open, and nothing of its pipeline runs yet.
    case opened
    /// The pipeline goes on. `complaints` has a line for each change that failed.
    case changed(complaints: [String])
    /// No camera was opened.
    case failed(String)
  }

  /// The present facts about a camera that only its pipeline knows.
  package struct Observation: Sendable {
    /// The settings that `nightjar ctl` has changed since the configuration was applied.
    var controlled: Set<CameraChange> = []
    /// `true` if the stream lacks a configured destination.
    var lacksDestination = false

    /// Creates an observation.
    package init(controlled: Set<CameraChange> = [], lacksDestination: Bool = false) {
      (self.controlled, self.lacksDestination) = (controlled, lacksDestination)
    }
  }

  /// An event that the table handles.
  package enum Event: Sendable {
    /// A reload has read another configuration.
    case reload(ApplianceConfiguration, isServed: Bool, asked: Instant, warnings: [String], [Int: Observation])
    /// The servers have followed the reload.
    case serversFollowed
    /// A server has changed for a reload.
    case serverChanged(String)
    /// Work on a camera is done.
    case workEnded(Int, Outcome)
    /// The work could not begin, or its result cannot be used.
    case workFailed(Int, String)
    /// The parts of a stream beside its pipeline have adopted the changes; with a reason if they have not.
    case adopted(Int, failure: String?)
    /// A camera's pipeline runs.
    case streams(Int)
    /// A pipeline has ended by itself; with a reason if it failed.
    case ended(Int, failure: String?)
    /// The search for missing destinations has begun, or has ended.
    case searches(Int, Bool)
    /// A destination was refused for good.
    case refusedDestination(Int)
    /// Something went wrong that does not end a stream.
    case complaint(Int?, String, event: String = "reload")
    /// The progress of the pipelines, for the watchdog. No stage may take longer than `limit` for a frame.
    case progress([Int: PipelineProgress], frameIntervals: [Int: Duration], limit: Duration)
    /// Time has passed.
    case tick
    /// All effects so far were carried out.
    case carriedOut
  }

  /// An effect for the caller to carry out, in order.
  package enum Effect: Sendable {
    /// Make the resources of a new camera, before anything else is done with it. `after` is the removed camera of the same
    /// source, whose mute the new one takes over; nil for none.
    case add(Int, after: Int?)
    /// Forget a camera, once its stream was released.
    case remove(Int)
    /// Give the camera's controls the values of its new configuration.
    case follow(Int, sourceChanged: Bool)
    /// Open the camera on a thread of its own, once the former pipelines have let go of it.
    case open(Int)
    /// Make a stream of the camera that was opened, and begin it.
    case begin(Int)
    /// Change the stream on a thread of its own.
    case change(Int, Set<CameraChange>)
    /// Let the parts of a stream beside its pipeline adopt changes: SDP files, lines, controls.
    case adopt(Int, Set<CameraChange>)
    /// Stop the stream. The pipeline ends by ``open(_:)`` or by ``close``.
    case release(Int, SourceSelection)
    /// End the released pipelines that no camera waits for.
    case close
    /// Tell the servers which cameras there are now.
    case publish
    /// Tell the camera, its format and the commands that show it.
    case introduce(Int)
    /// Write a line, of one camera or of the appliance.
    case tell(Int?, String, LogLevel, event: String)
    /// Answer the clients that wait for the reload.
    case answer(ReloadAnswer)
    /// Answer the clients whose reload has not begun and who have waited since before a time.
    case answerWaiters(since: Instant, ReloadAnswer)
    /// Tell systemd that the program is alive.
    case keepAlive
  }
}
