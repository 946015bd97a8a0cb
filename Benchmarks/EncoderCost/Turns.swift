#if X264
  import Encoding
  import Glibc
  import Media

  /// The cost of a rotation of the picture at the encoder: the first frame after it, with the standby and without one,
  /// against a frame like any other; 100 ms of pictures between two rotations, at 30 frames a second of idle time.
  func measureTurns(_ choice: EncoderChoice, _ configuration: EncoderConfiguration, node: String, turns: Int) throws {
    let turned = PictureSize(width: configuration.size.height, height: configuration.size.width)
    let scenes = [try Scene(configuration.size), try Scene(turned)]
    var fields: [String] = []
    var memory = 0
    var allocations = 0
    for keepsStandby in [true, false] {
      var policy = EncoderLineup.Policy()
      policy.keepsStandby = keepsStandby
      policy.hangLimit = 100
      let selection = try EncoderSelector.select(choice, configuration, node: node, policy: policy, aspects: .both)
      let encoder = selection.encoder
      if let lineup = encoder as? EncoderLineup, keepsStandby {
        while !lineup.isStandbyReady { usleep(10_000) }
        memory = lineup.standbyMemory ?? 0
      }
      var first: [Double] = []
      var steady: [Double] = []
      for turn in 0...turns {
        for index in 0..<4 {
          usleep(25_000)
          let before = counter?() ?? 0
          let time = try scenes[turn % 2].time { frame in
            try encoder.encode(frame, keyFrame: index == 0) { unit in precondition(!unit.nalUnits.isEmpty) }
          }
          if index > 0 {
            steady.append(time)
          } else if turn > 0 {
            first.append(time)
            if keepsStandby, turn > 1 { allocations = max(allocations, (counter?() ?? 0) - before) }
          }
        }
      }
      encoder.stop()
      let late = first.sorted()[first.count * 99 / 100]
      fields += [format(median(first)), format(late), format(median(steady))]
    }
    print("turn,\(choice.rawValue),\(turns)," + fields.joined(separator: ",") + ",\(memory),\(allocations)")
  }
#endif
