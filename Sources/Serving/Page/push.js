// Whether this device is told of alerts while the page is closed: by Web Push, through the push service of the browser's maker.

import { element } from "./elements.js";
import { strings } from "./strings.js";

/**
 * The time in which a worker becomes active, in which the browser's push service answers, in which the host does, and for an end,
 * in milliseconds.
 */
export const [workerTime, serviceTime, hostTime, endTime] = [10_000, 30_000, 10_000, 3000];

/** The answers of a host that does not want to tell this device, as often as it is asked. */
const refusals = [403, 404, 409];

/** Where the page and its worker (worker.js) keep what they know of the subscription. */
const store = { name: "nightjar-push", address: new URL("push-state", import.meta.url).href };

/**
 * What is known of the subscription that this device is to have: `{ key, isPending }`; `{ isEnded }` if a person has ended it; null
 * if it is to have none.
 */
async function recall() {
  try {
    const kept = await (await caches.open(store.name)).match(store.address);
    return kept ? await kept.json() : null;
  } catch {
    return null;
  }
}

async function put(known) {
  try {
    await (await caches.open(store.name)).put(store.address, new Response(JSON.stringify(known)));
  } catch {
    // Then it is not tried again by itself.
  }
}

/** Keeps the host's key, and whether the host does not know the present subscription yet. */
const keep = (key, isPending) => put({ key, isPending });

/** Keeps that a person has ended the subscription: one that the browser has all the same is removed at the next visit. */
const keepEnded = () => put({ isEnded: true });

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

/** What `promise` becomes; an error of the class `Failure` once the time is over. */
export function within(milliseconds, promise, Failure = Error) {
  return Promise.race([promise, new Promise((_, reject) => { setTimeout(() => reject(new Failure("no answer")), milliseconds); })]);
}

/** An iPhone or iPad: an iPad says that it is a Mac, and has a touch screen. */
const isApple = () => /iPhone|iPad/.test(navigator.userAgent)
  || navigator.userAgent.includes("Macintosh") && navigator.maxTouchPoints > 1;

/** What a person has decided makes the present work pointless. */
class Outdated extends Error {}

/** The worker, or what the browser does for it, does not answer. */
export class Stuck extends Error {}

/**
 * The worker's registration, once the worker is active; undefined or null if there is none.
 * @throws {Stuck} if the browser does not start the worker
 */
export async function active(worker) {
  const registration = await within(workerTime, worker, Stuck);
  const coming = registration?.installing ?? registration?.waiting;
  if (coming && !registration.active) {
    await within(workerTime, new Promise((resolve) => {
      coming.addEventListener("statechange", () => { if (coming.state === "activated") resolve(); });
    }), Stuck);
  }
  return registration;
}

/** What is wrong, in words; null if nothing is. */
function words(error) {
  if (error instanceof Outdated) return null;
  return error instanceof Stuck ? strings.stuck : strings.push.failed;
}

export class Push {
  #button = null;
  #isOn = false;
  /** `true` if it was on, and could not be renewed. */
  #isLost = false;
  /** The work that is under way or waits, one after the other: each of it reads what the one before has left. */
  #turn = Promise.resolve();
  /** The number of ends so far: what was begun before one must not bring the subscription back. */
  #ends = 0;
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
    const worker = await this.#registration();
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
        const complaint = await (this.#isOn ? this.end() : this.#ask(asked, this.#ends)).catch(words);
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
    try {
      await this.#inTurn(async (check) => {
        const complaint = await this.#renew(check).catch(() => strings.push.lost);
        const isPending = Boolean((await recall())?.isPending);
        check();
        this.#isLost = complaint !== null && isPending;
        if (this.#isLost) this.#say?.(complaint);
      });
    } catch {
      // It has ended meanwhile.
    }
    this.#draw();
  }

  /**
   * Does `work` once all before it is done. It gets a function that throws once there was an end meanwhile, and calls that before
   * each step: between the call and the step nothing else happens.
   */
  #inTurn(work, ends = this.#ends) {
    const check = () => { if (ends !== this.#ends) throw new Outdated(); };
    const done = this.#turn.then(() => work(check));
    this.#turn = done.catch(() => {});
    return done;
  }

  #draw() {
    const button = this.#button;
    if (!button) return;
    button.setAttribute("aria-pressed", String(this.#isOn));
    button.textContent = this.#isOn ? strings.push.isOn : this.#isLost ? strings.push.again : strings.push.tell;
  }

  /** The worker's registration; undefined or null if there is none. A worker that hangs keeps nobody waiting. */
  #registration() { return within(workerTime, this.worker, Stuck); }

  /** What the browser has subscribed to before; null for nothing. */
  async #present() {
    const manager = (await this.#registration())?.pushManager;
    return await within(workerTime, manager?.getSubscription(), Stuck) ?? null;
  }

  /**
   * Tells the host again what it may have lost, and subscribes anew where the host has another key, or the browser has ended the
   * subscription; returns a complaint if the host does not know the subscription that this device is to have, or null.
   */
  async #renew(check) {
    const [present, known] = [await this.#present(), await recall()];
    check();
    if (!present && !known) return null;
    if (known?.isEnded) {
      // The browser could not end it then, or the page was closed before that.
      this.#isOn = false;
      if (present) await this.#remove(present);
      return null;
    }
    // The page may be closed before it is done.
    if (!present) {
      this.#isOn = false;
      await keep(known.key, true);
    }
    check();
    const { key, status, isDisabled } = await this.#key();
    check();
    if (refusals.includes(status)) {
      await this.#giveUp(present);
      return null;
    }
    if (isDisabled) {
      this.#isOn = false;
      // The subscription is of use again once the host tells devices again.
      if (known) await keep(known.key, true);
      return strings.push.isOff;
    }
    if (key === null) return strings.push.lost;
    const isAllowed = globalThis.Notification?.permission === "granted";
    if (present && isAllowed && this.#isFor(present, key)) {
      return await this.#announce(present, check) ? null : strings.push.lost;
    }
    if (present) await this.#remove(present);
    check();
    if (!isAllowed) {
      this.#isOn = false;
      await forget();
      return null;
    }
    await keep(this.#keyText, true);
    const worker = await active(this.worker);
    check();
    const anew = await this.#subscribe(worker, key);
    check();
    const isKnown = await this.#announce(anew, check);
    if (isKnown) return null;
    await this.#unsubscribe(anew);
    return strings.push.lost;
  }

  /** Tells the host of a subscription; `false` if the host does not want it now. */
  async #announce(subscription, check) {
    const { ok, status } = await this.#tell("POST", subscription.toJSON());
    check();
    if (refusals.includes(status)) return this.#giveUp(subscription);
    this.#isOn = ok;
    if (ok) await keep(this.#keyText, false);
    return ok;
  }

  /** Forgets the subscription that the host does not want, so that nobody is told of it again; returns `true`. */
  async #giveUp(subscription) {
    this.#isOn = false;
    await forget();
    if (subscription) await this.#unsubscribe(subscription);
    return true;
  }

  #subscribe(worker, key) {
    return within(serviceTime, worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key }));
  }

  /** The host's key, null if it has none, the status of its answer, and `true` if the host tells no device at all. */
  async #key() {
    const answer = await within(hostTime, this.login.fetch("v1/push"));
    const { status } = answer;
    if (!answer.ok) {
      // 503 is also for too many connections or failed log-ins, which pass.
      const body = status === 503 ? await within(hostTime, answer.json()).catch(() => null) : null;
      return { key: null, status, isDisabled: body?.field === "web-push" };
    }
    this.#keyText = (await within(hostTime, answer.json())).key;
    return { key: bytes(this.#keyText), status, isDisabled: false };
  }

  #isFor(subscription, key) {
    const own = subscription.options?.applicationServerKey;
    return !own || equal(new Uint8Array(own), key);
  }

  /** @param login the log-in, or what is kept of it */
  #tell(method, { endpoint, keys }, login = this.login) {
    return within(hostTime, login.fetch("v1/push", {
      method, keepalive: true, headers: { "Content-Type": "application/json" },
      body: JSON.stringify(keys ? { endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth } } : { endpoint }),
    }));
  }

  /** Removes a subscription here and at the host. */
  #remove(subscription, login = this.login) {
    return Promise.allSettled([this.#tell("DELETE", { endpoint: subscription.endpoint }, login), this.#unsubscribe(subscription)]);
  }

  /** Ends a subscription in the browser. A push service that does not answer keeps nobody waiting. */
  async #unsubscribe(subscription) { await within(endTime, subscription.unsubscribe()).catch(() => {}); }

  /** Subscribes once the person allows it, unless there is another end meanwhile; returns a complaint, or null. */
  async #ask(asked, ends) {
    const obstacle = await this.#obstacle();
    if (obstacle) return obstacle;
    // No turn waits for a person.
    if (await asked !== "granted") return strings.push.forbidden;
    return this.#inTurn((check) => this.#begin(check), ends);
  }

  /** Subscribes; returns a complaint, or null. */
  async #begin(check) {
    check();
    const { key, status, isDisabled } = await this.#key();
    check();
    if (key === null) {
      if (isDisabled || refusals.includes(status)) {
        // The page says why now, and not again at each visit.
        this.#isLost = false;
        await forget();
      }
      return isDisabled ? strings.push.isOff : strings.push.failed;
    }
    const worker = await active(this.worker);
    let subscription = await this.#present();
    if (subscription && !this.#isFor(subscription, key)) {
      await this.#unsubscribe(subscription);
      subscription = null;
    }
    // The worker would end what is subscribed to now.
    if ((await recall())?.isEnded) await forget();
    check();
    try {
      subscription ??= await this.#subscribe(worker, key);
    } catch {
      return strings.push.noService;
    }
    check();
    const answer = await this.#tell("POST", subscription.toJSON());
    check();
    this.#isOn = answer.ok;
    if (answer.ok) {
      this.#isLost = false;
      await keep(this.#keyText, false);
      return null;
    }
    await this.#unsubscribe(subscription);
    if (refusals.includes(answer.status)) {
      this.#isLost = false;
      await forget();
    }
    if (answer.status !== 429) return strings.push.failed;
    return answer.headers.has("Retry-After") ? strings.push.tooOften : strings.push.tooMany;
  }

  /**
   * Ends it, here and at the host; returns null. A host that does not hear of it learns it from the push service. What is under way
   * stops at its next step, and what it has left is removed then; nobody waits long for that. What the browser does not end now is
   * removed at the next visit.
   */
  async end(login = this.login) {
    this.#ends += 1;
    [this.#isOn, this.#isLost] = [false, false];
    // The page may be closed before its turn comes. What is under way may keep or forget something meanwhile.
    const kept = keepEnded();
    const ended = this.#inTurn(async () => {
      await keepEnded();
      const present = await this.#present();
      if (present) await this.#remove(present, login);
    });
    await within(endTime, Promise.all([kept, ended])).catch(() => {});
    return null;
  }

  /** Ends it by the log-in of now, which may be forgotten at once: nobody waits for a host or a service that does not answer. */
  leave() { this.end(this.login.copy()); }
}
