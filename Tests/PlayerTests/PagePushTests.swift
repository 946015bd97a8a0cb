#if X264
  import Foundation
  import TestSupport
  import Testing

  /// Web Push on the page: its button, and the notifications that its worker makes of messages.
  ///
  /// A browser subscribes at its maker's push service, which no test reaches. So `subscribe` is replaced, and the
  /// browser's own tools deliver the messages to the worker.
  @Suite struct PagePushTests {
    /// The browser's push service: `told.service` is the subscription that it gives, null for none. The page's words
    /// last.
    static let instruments = """
      \(PageFaults.lastingWords)
      window.told = { service: null, key: null, asked: 0 };
      let present = null;
      PushManager.prototype.getSubscription = async () => present;
      PushManager.prototype.subscribe = async (options) => {
        told.asked += 1;
        told.key = btoa(String.fromCharCode(...new Uint8Array(options.applicationServerKey)));
        told.isVisible = options.userVisibleOnly;
        if (told.gate) await told.gate;
        if (!told.service) throw new DOMException("push service not available", "AbortError");
        return present = {
          ...told.service, options: { applicationServerKey: options.applicationServerKey.buffer },
          toJSON: () => told.service, unsubscribe: async () => { present = null; return true; },
        };
      };
      """

    /// The subscription that a push service gives.
    static let subscription = """
      {"endpoint":"https://push.example.net/a","keys":{"p256dh":
      "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
      "auth":"BTBZMqHH6r4Tts7J_aSIgg"}}
      """

    /// Opens the page as `anna`, once its worker is active.
    static func browser(
      _ program: WatchedProgram, instruments: String, permission: String = "granted"
    ) throws -> Browser {
      let browser = try Browser(in: program.directory)
      if !instruments.isEmpty { try browser.inject(instruments) }
      let origin = String(program.url("/").dropLast())
      if permission == "granted" {
        try browser.command("Browser.grantPermissions", ["permissions": ["notifications"], "origin": origin])
      } else {
        try browser.command(
          "Browser.setPermission",
          ["permission": ["name": "notifications"], "setting": permission, "origin": origin])
      }
      try browser.open(program.url("/"))
      try browser.run("localStorage.setItem('nightjar-login', 'Basic ' + btoa('anna:correct horse'))")
      try browser.open("about:blank")
      try browser.open(program.url("/#camera"))
      let worker = "navigator.serviceWorker.getRegistrations().then(([one]) => `${one?.active?.state}`)"
      try #require(
        eventually(within: 60) { browser.text(worker) == "activated" }, "\(browser.page) \(program.process.errorSoFar)")
      return browser
    }

    /// Returns the answer to `GET /v1/push`.
    static func answer(_ program: WatchedProgram) throws -> [String: Any] {
      let answer = try program.curl(["-u", "anna:correct horse"], "/v1/push")
      return try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any] ?? [:]
    }

    /// Returns `true` if the button with this text is on.
    static func isPressed(_ browser: Browser, _ text: String) -> Bool {
      browser.isTrue(
        "[...document.querySelectorAll('button[aria-pressed=true]')].some((one) => one.textContent === '\(text)')")
    }

    /// The words of the button, each with what it tells: nothing so far, that the device is told, and that it is no more.
    static let (tell, told, lost) = (
      "Tell this phone when the page is closed", "Told when the page is closed",
      "Not told any more when the page is closed: try again"
    )

    /// Returns the words of the button, which is the third of the camera's tools; nil where it is not shown.
    static func button(_ browser: Browser) -> String? { browser.shown(".tools > button:nth-child(3)") }

    @Test func `the button subscribes with the host's key and ends it, and logging out ends it too`() throws {
      let program = try WatchedProgram(["--webrtc-port", "0"], users: ["anna": "correct horse"])
      let browser = try Self.browser(program, instruments: Self.instruments)
      let key = try #require(try Self.answer(program)["key"] as? String)
      // A browser without a push service.
      try browser.click("Tell this phone when the page is closed")
      let complaint = "The browser does not reach its push service, or does not allow it."
      #expect(eventually { browser.notice == complaint }, "\(browser.page)")
      #expect(try Self.answer(program)["subscriptions"] as? Int == 0)
      #expect(browser.isTrue("told.isVisible"))
      #expect(browser.text("told.key.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')") == key)

      try browser.run("told.service = \(Self.subscription)")
      try browser.click("Tell this phone when the page is closed")
      #expect(eventually { Self.isPressed(browser, "Told when the page is closed") }, "\(browser.page)")
      #expect(try Self.answer(program)["subscriptions"] as? Int == 1)
      try browser.click("Told when the page is closed")
      #expect(try eventually { try Self.answer(program)["subscriptions"] as? Int == 0 }, "\(browser.page)")
      #expect(eventually { Self.button(browser) == Self.tell })

      try browser.click("Tell this phone when the page is closed")
      #expect(try eventually { try Self.answer(program)["subscriptions"] as? Int == 1 }, "\(browser.page)")
      // A push service that never answers: the log-in is gone at once all the same.
      let kept = """
        navigator.serviceWorker.getRegistrations().then(async ([one]) => {
          (await one.pushManager.getSubscription()).unsubscribe = () => new Promise(() => {});
          [...document.querySelectorAll("button")].find((one) => one.textContent === "Log out").click();
          return String(localStorage.getItem("nightjar-login"));
        })
        """
      #expect(browser.text(kept) == "null")
      #expect(try eventually { try Self.answer(program)["subscriptions"] as? Int == 0 }, "\(browser.page)")
      #expect(try browser.refusedContents() == [])
    }

    @Test func `a subscription that the browser has ended is made again, and until then the page says so`() throws {
      let program = try WatchedProgram(["--webrtc-port", "0"], users: ["anna": "correct horse"])
      let browser = try Self.browser(program, instruments: Self.instruments)
      try browser.run("told.service = \(Self.subscription)")
      try browser.click("Tell this phone when the page is closed")
      try #require(eventually { Self.isPressed(browser, "Told when the page is closed") }, "\(browser.page)")
      // The subscription of the stand-in ends with its page, and its service is away at first.
      func reopen() throws {
        try browser.open("about:blank")
        try browser.open(program.url("/#camera"))
      }
      try reopen()
      #expect(eventually(within: 60) { Self.button(browser) == Self.lost })
      #expect(browser.number("told.asked") == 1)
      try browser.run("told.service = \(Self.subscription)")
      try browser.run("dispatchEvent(new Event('online'))")
      #expect(eventually { Self.isPressed(browser, "Told when the page is closed") }, "\(browser.page)")
      #expect(try Self.answer(program)["subscriptions"] as? Int == 1)
      // What the person has turned off stays off.
      try browser.click("Told when the page is closed")
      #expect(try eventually { try Self.answer(program)["subscriptions"] as? Int == 0 }, "\(browser.page)")
      #expect(eventually { Self.button(browser) == Self.tell }, "\(browser.page)")
      try reopen()
      #expect(eventually(within: 60) { Self.button(browser) == Self.tell })
      #expect(Self.button(browser) != Self.lost && browser.number("told.asked") == 0)
    }

    @Test func `a device that is turned off meanwhile stays off, also under the next log-in`() throws {
      let program = try WatchedProgram(["--webrtc-port", "0"], users: ["anna": "correct horse"])
      // The half minute in which a push service answers (push.js) is over on a busy host before the next log-in.
      let patient = PageFaults.timers(where: "time === 30_000", take: 600_000)
      let browser = try Self.browser(program, instruments: Self.instruments + "\n" + patient)
      try browser.run("told.service = \(Self.subscription)")
      try browser.click("Tell this phone when the page is closed")
      try #require(eventually { Self.isPressed(browser, "Told when the page is closed") }, "\(browser.page)")
      // With the next page the browser has no subscription, and its push service takes its time.
      let slow = "told.service = \(Self.subscription); told.gate = new Promise((open) => { told.open = open; });"
      try browser.inject(slow)
      try browser.open("about:blank")
      try browser.open(program.url("/#camera"))
      try #require(eventually(within: 60) { browser.number("told.asked") == 1 }, "\(browser.page)")
      try browser.click("Log out")
      #expect(try eventually { try Self.answer(program)["subscriptions"] as? Int == 1 })
      try #require(eventually { browser.shown("form.login button") == "Log in" }, "\(browser.page)")
      try browser.type("anna", into: "username")
      try browser.type("correct horse", into: "password")
      try browser.click("Log in")
      try #require(eventually(within: 60) { Self.button(browser) != nil }, "\(browser.page)")
      try browser.run("told.open()")
      // Its end comes after it: the browser has no subscription, and the host hears of none.
      let present = """
        navigator.serviceWorker.getRegistrations().then(async ([one]) => String(await one.pushManager.getSubscription()))
        """
      #expect(eventually { browser.text(present) == "null" })
      #expect(try eventually { try Self.answer(program)["subscriptions"] as? Int == 0 })
      #expect(!Self.isPressed(browser, "Told when the page is closed"), "\(browser.page)")
      // A person who wants it again gets it.
      try browser.click("Tell this phone when the page is closed")
      #expect(eventually { Self.isPressed(browser, "Told when the page is closed") }, "\(browser.page)")
      #expect(try Self.answer(program)["subscriptions"] as? Int == 1)
    }

    @Test(arguments: [403, 404, 409])
    func `a device that the host does not want is told of that no more`(status: Int) throws {
      let program = try WatchedProgram(["--webrtc-port", "0"], users: ["anna": "correct horse"])
      // The host's answers are those of a host with another version or other rights.
      let answers = """
        const send = fetch;
        window.fetch = async (path, options) => (String(path).endsWith("v1/push") && localStorage.getItem("refuses")
          ? new Response("{}", { status: \(status) }) : send(path, options));
        """
      let browser = try Self.browser(program, instruments: Self.instruments + answers)
      try browser.run("told.service = \(Self.subscription)")
      try browser.click("Tell this phone when the page is closed")
      try #require(eventually { Self.isPressed(browser, "Told when the page is closed") }, "\(browser.page)")
      try browser.run("localStorage.setItem('refuses', '1')")
      for _ in 0..<2 {
        try browser.open("about:blank")
        try browser.open(program.url("/#camera"))
        let kept = "caches.open('nightjar-push').then((one) => one.keys()).then((keys) => String(keys.length))"
        #expect(eventually(within: 60) { browser.text(kept) == "0" }, "\(browser.page)")
        // In the second round nothing was kept before either.
        try #require(eventually(within: 60) { Self.button(browser) != nil }, "\(browser.page)")
        #expect(Self.button(browser) == Self.tell, "\(browser.page)")
      }
    }

    @Test func `a page that cannot be told says why`() throws {
      let program = try WatchedProgram(["--webrtc-port", "0"], users: ["anna": "correct horse"])
      do {
        let phone = """
          Object.defineProperty(navigator, 'userAgent', { value: 'Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X)' });
          """
        let browser = try Self.browser(program, instruments: Self.instruments + phone)
        try browser.click("Tell this phone when the page is closed")
        let words = "On an iPhone or iPad: add this page to the home screen, and open it from there."
        #expect(eventually { browser.notice == words }, "\(browser.page)")
        #expect(browser.number("told.asked") == 0)
      }
      do {
        let browser = try Self.browser(
          program,
          instruments: PageFaults.lastingWords
            + "delete ServiceWorkerRegistration.prototype.pushManager; window.told = {};")
        try browser.click("Tell this phone when the page is closed")
        let words = "This browser cannot be told while the page is closed."
        #expect(eventually { browser.notice == words }, "\(browser.page)")
      }
      do {
        let browser = try Self.browser(program, instruments: Self.instruments, permission: "denied")
        try browser.click("Tell this phone when the page is closed")
        let words = "This browser does not allow notifications of this page. Allow them in its settings."
        #expect(eventually { browser.notice == words }, "\(browser.page)")
        #expect(browser.number("told.asked") == 0)
      }
    }

    @Test func `the worker shows each message, with one notification for a kind and camera`() throws {
      let program = try WatchedProgram(["--webrtc-port", "0"], users: ["anna": "correct horse"])
      let browser = try Self.browser(program, instruments: "")
      let origin = String(program.url("/").dropLast())
      try browser.command("ServiceWorker.enable")
      func deliver(_ message: String) throws {
        // The number of the registration: the first of a new profile, as Chromium counts.
        try browser.command(
          "ServiceWorker.deliverPushMessage", ["origin": origin, "registrationId": "0", "data": message])
      }
      func message(_ id: Int, _ kind: String, _ title: String, state: String = "began") -> String {
        """
        {"id":\(id),"kind":"\(kind)","state":"\(state)","camera":"camera","time":"2026-11-21T02:03:06Z","title":"\(title)"}
        """
      }
      func shown() -> String {
        browser.text(
          """
          navigator.serviceWorker.getRegistrations().then(async ([one]) => (await one.getNotifications())
            .map((one) => `${one.title}|${one.tag}|${one.data?.id}|${one.silent}`).sort().join())
          """) ?? ""
      }
      // DevTools loses what it delivers while the worker begins: first messages come until the last of them is there,
      // so that none is under way, and are put away.
      var number = 1000
      let isThere = try eventually {
        number += 1
        try deliver(message(number, "noise", "Noise"))
        return eventually(within: Double(number - 1000)) { shown().contains("Noise|nightjar-noise-camera|\(number)|") }
      }
      #expect(isThere, "\(shown())")
      try browser.run(
        "return navigator.serviceWorker.getRegistrations().then(async ([one]) => (await one.getNotifications()).map((one) => one.close()))"
      )
      #expect(eventually { shown().isEmpty }, "\(shown())")
      try deliver(message(7, "crying", "Probably crying"))
      #expect(eventually { shown() == "Probably crying|nightjar-crying-camera|7|false" }, "\(shown())")
      #expect(
        browser.isTrue(
          """
          navigator.serviceWorker.getRegistrations().then(async ([one]) => (await one.getNotifications())
            .every((one) => one.body.startsWith('camera · ') && one.icon.endsWith('/page/icon.png')))
          """))
      // The same once more makes no noise, and a newer one takes its place.
      try deliver(message(7, "crying", "Probably crying"))
      #expect(eventually { shown() == "Probably crying|nightjar-crying-camera|7|true" }, "\(shown())")
      try deliver(message(9, "crying", "Probably crying"))
      #expect(eventually { shown() == "Probably crying|nightjar-crying-camera|9|false" }, "\(shown())")
      try deliver(message(10, "noise", "Noise"))
      try deliver(message(9, "crying", "Probably crying: somebody takes care of it", state: "acknowledged"))
      let both =
        "Noise|nightjar-noise-camera|10|false,Probably crying: somebody takes care of it|nightjar-crying-camera|9|true"
      #expect(eventually { shown() == both }, "\(shown())")
      // What is no message of ours is shown all the same, because browsers demand it.
      try deliver("nonsense")
      #expect(eventually { shown().contains("nightjar|nightjar-alert-|0|false") }, "\(shown())")
    }

    @Test func `the worker subscribes again where the browser has ended it, and has the page tell the host`() throws {
      let directory = try TemporaryDirectory()
      let browser = try Browser(in: directory)
      let file = packageRoot.appendingPathComponent("Sources/Serving/Page/worker.js")
      let worker = try String(contentsOf: file, encoding: .utf8)
      // No tool of the browser ends a subscription.
      let script = """
        const [source, name, key, comes, open, known] = arguments;
        const handlers = {};
        const said = [];
        const given = { unsubscribe: async () => { said.push("unsubscribe"); } };
        let [kept, present] = [known, name === "push" && comes ? given : null];
        const window = { url: "https://box:8443/", postMessage: (data) => said.push(`renewed ${data.isRenewed}`) };
        const store = {
          match: async () => (kept ? { json: async () => kept } : undefined),
          put: async (_, answer) => { kept = await answer.json(); },
        };
        const registration = {
          pushManager: {
            getSubscription: async () => present,
            subscribe: async ({ applicationServerKey: key, userVisibleOnly: is }) => {
              said.push(`subscribe ${key} ${is}`);
              if (key === "forbidden") throw new Error("no");
              present = {};
              return present;
            },
          },
          getNotifications: async () => [], showNotification: async (title, { tag }) => { said.push(`show ${tag}`); },
        };
        new Function("addEventListener", "clients", "location", "registration", "caches", source)(
          (name, handler) => { handlers[name] = handler; }, { matchAll: async () => (open ? [window] : []) },
          { href: "https://box:8443/page/worker.js" }, registration, { open: async () => store });
        let done;
        handlers[name]({
          oldSubscription: key === null ? null : { options: { applicationServerKey: key } },
          newSubscription: comes ? given : null, data: { json: () => ({ id: 7, kind: "noise" }) },
          waitUntil: (promise) => { done = promise; },
        });
        return done.then(() => said.sort().join() + (kept && kept.isPending ? " pending" : ""));
        """
      func said(
        _ key: Any, on name: String = "pushsubscriptionchange", comes: Bool = false, isOpen: Bool,
        known: Any = NSNull()
      ) throws -> String? {
        try browser.run(script, [worker, name, key, comes, isOpen, known]) as? String
      }
      #expect(try said("key", isOpen: true) == "renewed true,subscribe key true pending")
      #expect(try said("key", isOpen: false) == "show nightjar-renewed,subscribe key true pending")
      #expect(try said("forbidden", isOpen: false) == "show nightjar-renewed,subscribe forbidden true pending")
      let both = "renewed true,show nightjar-renewed,subscribe forbidden true pending"
      #expect(try said("forbidden", isOpen: true) == both)
      #expect(try said("key", comes: true, isOpen: true) == "renewed true pending")
      #expect(try said(NSNull(), isOpen: false) == "show nightjar-renewed pending")
      // A browser may not say the former key, which the page has kept.
      let known: [String: Any] = ["key": "kept", "isPending": false]
      #expect(try said(NSNull(), isOpen: true, known: known) == "renewed true,subscribe kept true pending")
      // What was impossible is tried again with the next message; what is done is not.
      let pending: [String: Any] = ["key": "kept", "isPending": true]
      let again = "renewed true,show nightjar-noise-,subscribe kept true pending"
      #expect(try said(NSNull(), on: "push", isOpen: true, known: pending) == again)
      #expect(try said(NSNull(), on: "push", isOpen: true, known: known) == "show nightjar-noise-")
      // What a person has ended is not made again, and ends here if the browser has not ended it.
      let ended: [String: Any] = ["isEnded": true]
      #expect(try said("key", isOpen: true, known: ended) == "")
      #expect(try said("key", comes: true, isOpen: false, known: ended) == "unsubscribe")
      let message = "show nightjar-noise-,unsubscribe"
      #expect(try said(NSNull(), on: "push", comes: true, isOpen: false, known: ended) == message)
    }

    @Test func `a touch on a notification leads to its camera, in the page that is open or in a new one`() throws {
      let directory = try TemporaryDirectory()
      let browser = try Browser(in: directory)
      let file = packageRoot.appendingPathComponent("Sources/Serving/Page/worker.js")
      let worker = try String(contentsOf: file, encoding: .utf8)
      // Chromium without a window has no notification that could be touched, so that the worker's parts are stood in for.
      let script = """
        const [source, camera, open] = arguments;
        const handlers = {};
        const said = [];
        const window = {
          url: "https://box:8443/#other", postMessage: (data) => said.push(`sent ${data.camera}`), focus: () => said.push("focus"),
        };
        const clients = { matchAll: async () => (open ? [window] : []), openWindow: (url) => said.push(url) };
        new Function("addEventListener", "clients", "location", "registration", source)(
          (name, handler) => { handlers[name] = handler; }, clients, { href: "https://box:8443/page/worker.js" }, {});
        let done;
        handlers.notificationclick({
          notification: { close: () => said.push("close"), data: camera === null ? null : { id: 7, camera } },
          waitUntil: (promise) => { done = promise; },
        });
        return done.then(() => said.join());
        """
      func said(_ camera: Any, isOpen: Bool) throws -> String? {
        try browser.run(script, [worker, camera, isOpen]) as? String
      }
      #expect(try said("front door", isOpen: false) == "close,https://box:8443/#front%20door")
      #expect(try said("front door", isOpen: true) == "close,sent front door,focus")
      #expect(try said(NSNull(), isOpen: false) == "close,https://box:8443/")
      #expect(try said(NSNull(), isOpen: true) == "close,focus")
    }
  }
#endif
