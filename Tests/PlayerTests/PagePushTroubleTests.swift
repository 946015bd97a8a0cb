#if X264
  import Foundation
  import TestSupport
  import Testing

  /// Web Push on the page, where the browser or the host does not do what the page wants.
  @Suite struct PagePushTroubleTests {
    /// A browser whose subscription outlives the page, and cannot be ended.
    private static let lasting = """
      {
        const given = {
          ...\(PagePushTests.subscription), toJSON: () => (\(PagePushTests.subscription)),
          unsubscribe: async () => {
            told.ended = (told.ended ?? 0) + 1;
            throw new DOMException("no service", "NetworkError");
          },
        };
        PushManager.prototype.getSubscription = async () => (localStorage.getItem("subscribed") ? given : null);
        PushManager.prototype.subscribe = async () => { localStorage.setItem("subscribed", "1"); return given; };
      }
      """

    /// A browser that does not answer the call that `hangs` of its storage names, or whose worker is never installed
    /// (`install`). The page's wait for that, ten seconds, takes half a second.
    private static let hanging = """
      {
        const hangs = (call) => location.protocol === "https:" && localStorage.getItem("hangs") === call;
        const { register } = ServiceWorkerContainer.prototype;
        ServiceWorkerContainer.prototype.register = function (...all) {
          return hangs("register") ? new Promise(() => {}) : register.apply(this, all);
        };
        const { getSubscription } = PushManager.prototype;
        PushManager.prototype.getSubscription = function () {
          if (!hangs("getSubscription")) return getSubscription.call(this);
          told.isWaiting = true;
          return new Promise(() => {});
        };
        const { showNotification } = ServiceWorkerRegistration.prototype;
        ServiceWorkerRegistration.prototype.showNotification = function (...all) {
          return hangs("showNotification") ? new Promise(() => {}) : showNotification.apply(this, all);
        };
        const { active, installing } = Object.getOwnPropertyDescriptors(ServiceWorkerRegistration.prototype);
        Object.defineProperties(ServiceWorkerRegistration.prototype, {
          active: { get() { return hangs("install") ? null : active.get.call(this); } },
          installing: {
            get() {
              if (!hangs("install")) return installing.get.call(this);
              told.isWaiting = true;
              return new EventTarget();
            },
          },
        });
        const wait = setTimeout;
        window.setTimeout = (work, time, ...all) => {
          // The host's ten seconds stay as they are.
          const isShort = time === 10_000 && (hangs("register") || hangs("showNotification") || told.isWaiting);
          if (isShort) told.isWaiting = false;
          return wait(work, isShort ? 500 : time, ...all);
        };
      }
      """

    /// A host whose alerts are those that `told.begin` gets, and a browser whose page may show notifications itself. While
    /// the storage has `isPhone`, the worker alone may, as on a phone.
    private static let notifying = """
      {
        told.notices = [];
        window.Notification = class {
          static permission = "granted";
          static async requestPermission() { return "granted"; }
          constructor(title) {
            if (localStorage.getItem("isPhone")) throw new TypeError("Illegal constructor");
            told.notices.push(title);
          }
          close() {}
        };
        const send = fetch;
        window.fetch = async (path, options) => {
          if (path !== "v1/events") return send(path, options);
          return new Response(new ReadableStream({
            start(events) {
              const encoder = new TextEncoder();
              told.begin = (id, kind) => events.enqueue(encoder.encode(`data: ${JSON.stringify({
                id, of: id, kind, state: "began", camera: "camera", time: "2026-11-21T02:03:06Z", confidence: 1, text: "",
              })}\\n\\n`));
            },
          }));
        };
      }
      """

    /// A host without Web Push, while the browser's storage has `isOff`.
    private static let refusing = """
      {
        const send = fetch;
        window.fetch = async (path, options) => (String(path).endsWith("v1/push") && localStorage.getItem("isOff")
          ? new Response('{"error":"off","failure":"unavailable","field":"web-push"}', { status: 503 })
          : send(path, options));
      }
      """

    /// The page's words where the browser does not start its worker, and where the host tells no device.
    private static let (hangs, isOff) = (
      "The browser does not start this page's service worker. Close all tabs of this page, then open it again.",
      "The camera's computer sends no alerts to closed pages. Either --no-web-push is set there, or nightjar's log names "
        + "the reason."
    )

    private static func reopen(_ browser: Browser, _ program: WatchedProgram) throws {
      try browser.open("about:blank")
      try browser.open(program.url("/#camera"))
    }

    private static func subscribe(_ browser: Browser) throws {
      try browser.click("Tell this phone when the page is closed")
      let isOn = eventually { PagePushTests.isPressed(browser, "Told when the page is closed") }
      try #require(isOn, "\(browser.page)")
    }

    @Test func `what is turned off stays off, though the browser does not end its subscription`() throws {
      let program = try WatchedProgram(["--webrtc-port", "0"], users: ["anna": "correct horse"])
      let browser = try PagePushTests.browser(program, instruments: PagePushTests.instruments + Self.lasting)
      func count() throws -> Int? { try PagePushTests.answer(program)["subscriptions"] as? Int }
      try Self.subscribe(browser)
      #expect(try count() == 1)
      try browser.click("Told when the page is closed")
      try #require(try eventually { try count() == 0 }, "\(browser.page)")
      for _ in 0..<2 {
        try Self.reopen(browser, program)
        // The page tries once more to end it, and tells the host of none.
        #expect(eventually(within: 60) { (browser.number("told.ended") ?? 0) > 0 }, "\(browser.page)")
        #expect(!PagePushTests.isPressed(browser, "Told when the page is closed"), "\(browser.page)")
        #expect(try count() == 0)
      }
      // A person who wants it again gets it, and keeps it.
      try Self.subscribe(browser)
      try Self.reopen(browser, program)
      let isOn = eventually(within: 60) { PagePushTests.isPressed(browser, "Told when the page is closed") }
      #expect(isOn, "\(browser.page)")
      #expect(try count() == 1)
    }

    @Test(arguments: ["register", "install", "getSubscription"])
    func `a worker that hangs is told of, and the button can be pressed again`(call: String) throws {
      let program = try WatchedProgram(["--webrtc-port", "0"], users: ["anna": "correct horse"])
      let browser = try PagePushTests.browser(program, instruments: PagePushTests.instruments + Self.hanging)
      try browser.run("localStorage.setItem('hangs', arguments[0])", [call])
      try Self.reopen(browser, program)
      try browser.click("Tell this phone when the page is closed")
      let isTold = eventually { browser.notice == Self.hangs }
      #expect(isTold, "\(browser.page)")
      let button =
        "[...document.querySelectorAll('button')].find((one) => one.textContent.startsWith('Tell this phone'))"
      #expect(browser.isTrue("\(button)?.disabled === false"), "\(browser.page)")
    }

    @Test(arguments: ["register", "install", "showNotification"])
    func `a notification is shown though the worker hangs, and a phone that shows none says so`(call: String) throws {
      let program = try WatchedProgram(["--webrtc-port", "0"], users: ["anna": "correct horse"])
      let browser = try PagePushTests.browser(
        program, instruments: PagePushTests.instruments + Self.hanging + Self.notifying)
      try browser.run("localStorage.setItem('hangs', arguments[0])", [call])
      try Self.reopen(browser, program)
      try browser.click("Tell me of alerts")
      if call != "showNotification" {
        let isTold = eventually { browser.notice == Self.hangs }
        #expect(isTold, "\(browser.page)")
      }
      try #require(eventually { browser.isTrue("told.begin") }, "\(browser.page)")
      let complaint = "this page's service worker hangs"
      try browser.run("told.begin(1001, 'noise')")
      #expect(eventually { browser.text("told.notices.join()") == "Noise" }, "\(browser.page)")
      #expect(browser.page.contains("Noise") && !browser.page.contains(complaint), "\(browser.page)")

      try browser.run("localStorage.setItem('isPhone', '1')")
      try browser.run("told.begin(1002, 'movement')")
      #expect(eventually { browser.page.contains(complaint) }, "\(browser.page)")
      #expect(browser.text("told.notices.join()") == "Noise")
      // The words stay until a person acknowledges the alert.
      try browser.click("I take care of it")
      #expect(eventually { !browser.page.contains(complaint) }, "\(browser.page)")
    }

    @Test func `a host with --no-web-push is named as the reason`() throws {
      let program = try WatchedProgram(["--webrtc-port", "0", "--no-web-push"], users: ["anna": "correct horse"])
      let browser = try PagePushTests.browser(program, instruments: PagePushTests.instruments)
      try browser.click("Tell this phone when the page is closed")
      #expect(eventually { browser.notice == Self.isOff }, "\(browser.page)")
      #expect(browser.number("told.asked") == 0)
    }

    @Test func `a device that is told says so when the host tells none any more, until it does again`() throws {
      let program = try WatchedProgram(["--webrtc-port", "0"], users: ["anna": "correct horse"])
      let instruments = PagePushTests.instruments + Self.lasting + Self.refusing
      let browser = try PagePushTests.browser(program, instruments: instruments)
      try Self.subscribe(browser)
      try browser.run("localStorage.setItem('isOff', '1')")
      try Self.reopen(browser, program)
      #expect(eventually(within: 60) { browser.notice == Self.isOff }, "\(browser.page)")
      #expect(eventually { PagePushTests.button(browser) == PagePushTests.lost }, "\(browser.page)")
      try browser.run("localStorage.removeItem('isOff')")
      try browser.run("dispatchEvent(new Event('online'))")
      let isOn = eventually { PagePushTests.isPressed(browser, "Told when the page is closed") }
      #expect(isOn, "\(browser.page)")
    }
  }
#endif
