import Settings

extension BoxConfiguration {
  /// One of the cameras: what it is to do, and where file and environment say so.
  struct Camera {
    let command: StreamCommand
    let settings: OptionLayer

    var name: String { command.name }

    /// The options that say something else now. The command line is the same for as long as the program runs.
    func changes(from old: Camera) -> Set<String> {
      Set(settings.keys).union(old.settings.keys).filter {
        (settings[$0] ?? old.settings[$0])?.option.scope != .box && settings[$0]?.words != old.settings[$0]?.words
      }
    }

    /// What an option says now, for a person.
    func text(of option: String) -> String {
      settings[option]?.words.map { $0.split(separator: "=", maxSplits: 1).last.map(String.init) ?? "" }
        .joined(separator: " ") ?? "as usual"
    }
  }

  /// How many cameras, the first ones, keep encoders ready that they do not need yet: memory and threads are bounded in
  /// all, whatever the number of cameras.
  static let standbyLimit = 3

  /// The cameras, in the order of the file.
  var streams: [Camera] { zip(cameras, settings).map(Camera.init) }

  /// A line for each thing that the file says now, and to no effect, because the command line goes before it.
  func overridden(since old: BoxConfiguration) -> [String] {
    func said(_ setting: OptionSetting) -> [String] { [setting.option.name] + setting.words }
    let before = Set(old.overridden.map(said))
    return overridden.filter { !before.contains(said($0)) }.map {
      "\($0.origin): \($0.option.name): the command line says it too, and goes before it"
    }.sorted()
  }

  /// The options of the box that say something else now.
  func changes(from old: BoxConfiguration) -> Set<String> {
    let (new, old) = (settings[0], old.settings[0])
    return Set(new.keys).union(old.keys).filter {
      (new[$0] ?? old[$0])?.option.scope == .box && new[$0]?.words != old[$0]?.words
    }
  }
}
