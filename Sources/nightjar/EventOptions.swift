import ArgumentParser

/// The options of the events.
struct EventOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The file of the last 1000 events, or none for a history in memory.",
      discussion: """
        The default is events.log in the state directory of the service; other runs have their history in memory. \
        nightjar events follows the events, nightjar ctl events lists them.
        """, valueName: "file"))
  var eventsFile: String?

  @Flag(
    name: .customLong("event-pictures"), inversion: .prefixedNo,
    help: ArgumentHelp(
      "Keep a picture of before and one of after each alert of a camera with --noise, --crying or --movement.",
      discussion: """
        They are beside the events file, in the folder FILE.pictures: 64 MiB at most, for nightjar's user alone.
        """))
  var takesPictures = true

  @Option(
    help: ArgumentHelp(
      "The local times between which alerts are recorded and marked as quiet, as in 22:00-06:30; or none.",
      valueName: "from-to"))
  var quietHours: String?

  @Flag(
    name: .customLong("web-push"), inversion: .prefixedNo,
    help: ArgumentHelp(
      "Let browsers of --https subscribe to alerts for the time in which their page is closed.",
      discussion: """
        nightjar then sends each alert, encrypted, to the push service of the browser's maker. It sends nothing until \
        somebody subscribes on the page.
        """))
  var webPush = true

  @Option(
    help: ArgumentHelp(
      "A mail address or a URL https:// by which push services reach whoever runs this host.",
      discussion: "Each message has it. Apple's service, for iPhones, refuses messages without one.",
      valueName: "mail-or-url"))
  var webPushContact: String?

  @Option(
    help: ArgumentHelp(
      "A URL that gets each event as a request POST with JSON; repeat for more.",
      discussion: """
        nightjar tries again until the other side takes the event; of more than 100 events that wait, it drops the \
        oldest. It follows no redirect. As other users see a command line, a URL with a secret belongs into the \
        configuration file.
        """, valueName: "url"))
  var webhook: [String] = []

  @Option(
    help: ArgumentHelp(
      "The file of the key that signs the requests of --webhook (HMAC-SHA256).",
      discussion: "Nobody else may read it. Make one with: echo whsec_$(openssl rand -base64 32)", valueName: "file"))
  var webhookKey: String?

  @Flag(help: "Let --webhook connect to private, loopback and link-local addresses too.")
  var webhookPrivate = false

  @Option(
    help: ArgumentHelp(
      "A program that runs for each event, and its arguments: one word each time.",
      discussion: """
        The first word is the whole path. There is no shell. The program gets the event's JSON on its standard input, \
        has 30 seconds, and one runs at a time. An argument with a dash needs an equals sign: --event-command=-t
        """, valueName: "word"))
  var eventCommand: [String] = []

  @Option(
    help: ArgumentHelp(
      "An MQTT broker that gets events and states, and by which Home Assistant finds the cameras.",
      discussion: """
        mqtts://HOST is encrypted; mqtt://HOST is not. nightjar connects again until the broker is there; of more than \
        100 events that wait, it drops the oldest.
        """, valueName: "url"))
  var mqtt: String?

  @Option(
    name: .customLong("mqtt-ca"),
    help: ArgumentHelp(
      "The file of the authorities that may vouch for the broker of --mqtt, in PEM; the default is those of the system.",
      valueName: "file"))
  var mqttCA: String?

  @Option(
    help: ArgumentHelp(
      "The file of the user at the broker of --mqtt (first line) and the password (second line).",
      discussion: "Nobody else may read it.", valueName: "file"))
  var mqttLogin: String?

  @Option(
    help: ArgumentHelp(
      "The beginning of the topics at the broker of --mqtt; the default is nightjar/ and the host's name.",
      valueName: "topic"))
  var mqttPrefix: String?

  @Option(
    help: ArgumentHelp(
      "The beginning of the topics by which Home Assistant finds the cameras (default: homeassistant), or none.",
      valueName: "topic"))
  var mqttDiscovery: String?

  @Option(
    help: ArgumentHelp(
      "The pictures for the broker of --mqtt: events for those of alerts (the default), a time as in 60s for more, or none.",
      discussion: "They are of cameras with --noise, --crying or --movement.", valueName: "which"))
  var mqttSnapshots: String?
}
