// Whether this device is told of alerts while the page is closed: by Web Push, through the push service of the browser's maker.

import { element } from "./elements.js";
import { strings } from "./strings.js";

/** The time in which a worker becomes active, in which the browser's push service answers, and for an end, in milliseconds. */
const [workerTime, serviceTime, endTime] = [10_000, 30_000, 3000];

/** Where the page and its worker (worker.js) keep what they know of the subscription. */
const store = { name: "nightjar-push", address: new URL("push-state", import.meta.url).href };

/** What is known of the subscription that this device is to have: `{ key, isPending }`; null if it is to have none. */
async function recall() {
  try {
    const kept = await (await caches.open(store.name)).match(store.address);
    return kept ? await kept.json() : null;
  } catch {
    return null;
  }
}

/** Keeps the host's key, and whether the host does not know the present subscription yet. */
async function keep(key, isPending) {
  try {
    await (await caches.open(store.name)).put(store.address, new Response(JSON.stringify({ key, isPending })));
  } catch {
    // Then it is not tried again by itself.
  }
}

/** Forgets that this device is to have a subscription. */
async function forget() {
  try {
    await caches.delete(store.name);
  } catch {
    // Nothing is kept there.
  }
}

/** The bytes of Base64 for URLs. */
function bytes(text) {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
}

function equal(one, other) {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

/** What `promise` becomes; an error once the time is over. */
function within(milliseconds, promise) {
  return Promise.race([promise, new Promise((_, reject) => { setTimeout(() => reject(new Error("no answer")), milliseconds); })]);
}

/** An iPhone or iPad: an iPad says that it is a Mac, and has a touch screen. */
const isApple = () => /iPhone|iPad/.test(navigator.userAgent)
  || navigator.userAgent.includes("Macintosh") && navigator.maxTouchPoints > 1;

export class Push {
  #button = null;
  #isOn = false;
  /** `true` if it was on, and could not be renewed. */
  #isLost = false;
  /** The end that goes on after a log-out. */
  #leaving = null;
  /** The host's key in Base64 for URLs, as it was last heard. */
  #keyText = null;
  #say = null;

  /** @param {Promise<ServiceWorkerRegistration | null>} worker the worker that shows the notifications */
  constructor(login, worker) {
    Object.assign(this, { login, worker });
    // Without a network nothing could be renewed.
    addEventListener("online", () => { if (this.#button?.isConnected) this.renew(); });
  }

  /** Why this device cannot be told, in words; null if it can. */
  async #obstacle() {
    const worker = await this.worker;
    // iPhones have no PushManager outside of the home screen.
    if (isApple() && navigator.standalone !== true) return strings.push.homeScreen;
    // By plain HTTP a page of this host has a worker, and the host no log-ins.
    if (location.protocol !== "https:" || !navigator.serviceWorker || !worker) return strings.push.untrusted;
    if (!worker.pushManager || !globalThis.Notification) return strings.push.unable;
    return null;
  }

  /** A button that turns it on or off; `say` says why that is impossible. */
  button(say) {
    const button = element("button", {
      type: "button", "aria-pressed": "false", onclick: async () => {
        if (button.disabled) return;
        button.disabled = true;
        // Before anything else: the browser asks by a touch alone.
        const asked = this.#isOn ? null : globalThis.Notification?.requestPermission();
        const complaint = await (this.#isOn ? this.end() : this.#begin(asked)).catch(() => strings.push.failed);
        button.disabled = false;
        this.#draw();
        if (complaint) say(complaint);
      },
    });
    this.#button = button;
    this.#say = say;
    this.#draw();
    this.renew();
    return button;
  }

  /** Tells the host of what the browser has subscribed to meanwhile; says so where that is impossible. */
  async renew() {
    const isDone = await this.#renew().catch(() => false);
    this.#isLost = !isDone && Boolean((await recall())?.isPending);
    this.#draw();
    if (this.#isLost) this.#say?.(strings.push.lost);
  }

  #draw() {
    const button = this.#button;
    if (!button) return;
    button.setAttribute("aria-pressed", String(this.#isOn));
    button.textContent = this.#isOn ? strings.push.isOn : this.#isLost ? strings.push.again : strings.push.tell;
  }

  /** What the browser has subscribed to before; null for nothing. */
  async #present() { return await (await this.worker)?.pushManager?.getSubscription() ?? null; }

  /**
   * Tells the host again what it may have lost, and subscribes anew where the host has another key, or the browser has ended the
   * subscription; `false` if the host does not know the subscription that this device is to have.
   */
  async #renew() {
    await this.#leaving;
    const [present, known] = [await this.#present(), await recall()];
    if (!present && !known) return true;
    // The page may be closed before it is done.
    if (!present) {
      this.#isOn = false;
      await keep(known.key, true);
    }
    const key = await this.#key();
    if (key === null) return false;
    const isAllowed = globalThis.Notification?.permission === "granted";
    if (present && isAllowed && this.#isFor(present, key)) {
      this.#isOn = (await this.#tell("POST", present.toJSON())).ok;
      if (this.#isOn) await keep(this.#keyText, false);
      return this.#isOn;
    }
    if (present) await Promise.allSettled([this.#tell("DELETE", { endpoint: present.endpoint }), present.unsubscribe()]);
    if (!isAllowed) {
      this.#isOn = false;
      await forget();
      return true;
    }
    await keep(this.#keyText, true);
    const anew = await this.#subscribe(await this.#active(), key);
    this.#isOn = (await this.#tell("POST", anew.toJSON())).ok;
    if (this.#isOn) await keep(this.#keyText, false);
    else await anew.unsubscribe();
    return this.#isOn;
  }

  #subscribe(worker, key) {
    return within(serviceTime, worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key }));
  }

  /** The host's key; null if it has none. */
  async #key() {
    const answer = await this.login.fetch("v1/push");
    if (!answer.ok) return null;
    this.#keyText = (await answer.json()).key;
    return bytes(this.#keyText);
  }

  #isFor(subscription, key) {
    const own = subscription.options?.applicationServerKey;
    return !own || equal(new Uint8Array(own), key);
  }

  /** @param login the log-in, or what is kept of it */
  #tell(method, { endpoint, keys }, login = this.login) {
    return login.fetch("v1/push", {
      method, keepalive: true, headers: { "Content-Type": "application/json" },
      body: JSON.stringify(keys ? { endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth } } : { endpoint }),
    });
  }

  /** Subscribes; returns a complaint, or null. */
  async #begin(asked) {
    const obstacle = await this.#obstacle();
    if (obstacle) return obstacle;
    if (await asked !== "granted") return strings.push.forbidden;
    await this.#leaving;
    const key = await this.#key();
    if (key === null) return strings.push.isOff;
    const worker = await this.#active();
    let subscription = await worker.pushManager.getSubscription();
    if (subscription && !this.#isFor(subscription, key)) {
      await subscription.unsubscribe();
      subscription = null;
    }
    try {
      subscription ??= await this.#subscribe(worker, key);
    } catch {
      return strings.push.noService;
    }
    const answer = await this.#tell("POST", subscription.toJSON());
    this.#isOn = answer.ok;
    if (answer.ok) {
      this.#isLost = false;
      await keep(this.#keyText, false);
      return null;
    }
    await subscription.unsubscribe();
    if (answer.status !== 429) return strings.push.failed;
    return answer.headers.has("Retry-After") ? strings.push.tooOften : strings.push.tooMany;
  }

  /** Ends it, here and at the host; returns null. A host that does not hear of it learns it from the push service. */
  async end(login = this.login) {
    [this.#isOn, this.#isLost] = [false, false];
    await forget();
    await within(endTime, this.#present().then((present) => present
      && Promise.allSettled([this.#tell("DELETE", { endpoint: present.endpoint }, login), present.unsubscribe()])))
      .catch(() => {});
    return null;
  }

  /** Ends it by the log-in of now, which may be forgotten at once: nobody waits for a host or a service that does not answer. */
  leave() { this.#leaving = this.end(this.login.copy()); }

  /** The worker's registration, once the worker is active. */
  async #active() {
    const registration = await this.worker;
    const coming = registration.installing ?? registration.waiting;
    if (!registration.active && coming) {
      await within(workerTime, new Promise((resolve) => {
        coming.addEventListener("statechange", () => { if (coming.state === "activated") resolve(); });
      }));
    }
    return registration;
  }
}
