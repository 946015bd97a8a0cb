// The alerts: a banner, tones, vibration and a notification for those that begin, and the list of the last ones.

import { Alarm } from "./alarm.js";
import { element, toggle, write } from "./elements.js";
import { Events } from "./events.js";
import { Push, Stuck, active, within, workerTime } from "./push.js";
import { strings } from "./strings.js";

const key = "nightjar-alerts";
/** The most alerts that the banner names, and the most lines of the list. */
const [bannerLimit, listLimit] = [3, 100];
/** The time in which events are collected, in milliseconds: after a night without network, one of an alert that is over comes with its end. */
const collecting = 300;
/** The number of times that the tones are played for an alert that is over meanwhile. */
const leastRings = 3;

const time = (text) => new Date(text).toLocaleTimeString();
const title = (alert) => strings.alerts[alert.kind] ?? alert.text;
/** The tag of a notification, as the worker has it. */
const tag = (alert) => `nightjar-${alert.kind}-${alert.camera ?? ""}`;

/** A line about an alert: where, when, and what the host says. */
function details(alert) {
  return [
    alert.camera, time(alert.time), alert.confidence < 1 ? strings.sure(Math.round(alert.confidence * 100)) : null, alert.text,
  ].filter((word) => word).join(" · ");
}

export class Alerts {
  /** Shows the alerts; belongs to the view that is shown. */
  element = element("div.alerts", { role: "alert" });
  bell = new Alarm({ tones: [523, 784], interval: 4000, vibration: [200, 100, 200, 100, 200] });
  /** Each alert since the page was opened and before, by the number of the event with which it began. */
  #alerts = new Map();
  /** Those that nobody on this device has acknowledged. */
  #shown = new Set();
  /** Those that a notification is to tell of. */
  #new = new Set();
  #notices = new Map();
  #hasHistory = false;
  #events = null;
  #worker = null;
  /** The worker's registration, once the browser has told it. */
  #registration = null;
  /** `true` if the last alert got no notification, because the worker hangs. */
  #isStuck = false;
  #dialog = null;

  /**
   * @param {() => void} began is called before an alert is shown
   */
  constructor(login, began) {
    Object.assign(this, { login, began });
    this.bell.rang = () => this.#stopBell();
    // A browser lets it sound after a touch alone: the first one, if it was wanted before.
    addEventListener("pointerdown", async () => {
      if (!this.isWanted) return;
      await this.bell.arm();
      this.#ring();
    }, { once: true });
    // Notifications on Android need it. A browser that does not trust the certificate has none.
    this.#worker = navigator.serviceWorker?.register("page/worker.js").catch(() => null);
    this.#worker?.then((registration) => { this.#registration = registration; });
    this.push = new Push(login, this.#worker);
    // A touch on a notification leads to its camera, and the browser may have subscribed anew by itself.
    navigator.serviceWorker?.addEventListener("message", ({ data }) => {
      if (data?.isRenewed) this.push.renew();
      if (typeof data?.camera === "string") location.hash = encodeURIComponent(data.camera);
    });
    navigator.serviceWorker?.startMessages();
  }

  /** `true` if this device is to sound, vibrate and notify. */
  get isWanted() { return localStorage.getItem(key) === "1"; }

  start() {
    this.#events ??= new Events(this.login, (events) => this.#begin(events), (event) => this.#take(event, true));
  }

  stop() {
    this.#events?.close();
    this.#events = null;
    this.#hasHistory = false;
    this.#new.clear();
    this.#alerts.clear();
    this.#shown.clear();
    this.#draw();
  }

  /** Whether this device tells of alerts, and the list of the last ones. */
  buttons(open, say) {
    return [
      toggle(this.isWanted ? strings.alertsOn : strings.tellAlerts, this.isWanted, async (isOn, button) => {
        localStorage.setItem(key, isOn ? "1" : "");
        button.textContent = isOn ? strings.alertsOn : strings.tellAlerts;
        if (!isOn) return this.bell.disarm();
        const asked = globalThis.Notification?.requestPermission();
        await this.bell.arm();
        if (await asked !== "granted") say?.(strings.noNotifications);
        else active(this.#worker).catch(() => say?.(strings.stuck));
        this.#ring();
      }),
      this.push.button((text) => say?.(text)),
      element("button", { type: "button", onclick: () => open(this.#list()) }, strings.events),
    ];
  }

  /** Takes the history, at first and where events were missed for good. An alert of before is shown if it goes on. */
  #begin(events) {
    this.#alerts.clear();
    const known = new Set(this.#shown);
    this.#shown.clear();
    for (const event of events) this.#take(event, false);
    for (const [id, alert] of this.#alerts) {
      if (alert.by || alert.over && !known.has(id)) continue;
      this.#shown.add(id);
      if (this.#hasHistory && !known.has(id)) this.#announce(alert);
    }
    this.#hasHistory = true;
    this.#draw();
    this.#ring();
  }

  #take(event, isNew) {
    const alert = this.#alerts.get(event.of);
    if (alert) alert.pictures = event.pictures;
    if (event.state === "began") {
      this.#alerts.set(event.id, { ...event });
      if (this.#alerts.size > listLimit) this.#alerts.delete(this.#alerts.keys().next().value);
    } else if (alert && event.state === "ended") {
      alert.over = event.time;
    } else if (alert && event.state === "acknowledged") {
      alert.by = event.text;
      this.#shown.delete(event.of);
      this.#dismiss(event.of);
    }
    if (!isNew) return;
    if (event.state === "began") {
      this.#shown.add(event.id);
      this.#announce(event);
    }
    this.#draw();
    if (event.state === "began" && !event.quiet) this.#ring(); else this.#stopBell();
  }

  /** The alerts that the banner shows and this device has in its list, the newest first. */
  get #banner() { return [...this.#shown].map((id) => this.#alerts.get(id)).filter((alert) => alert).reverse(); }

  #draw() {
    const alerts = this.#banner;
    const rows = alerts.slice(0, bannerLimit).map((alert) => element("p", {}, element("strong", {}, title(alert)),
      element("span", {}, details(alert) + (alert.over ? ` · ${strings.over(time(alert.over))}` : ""))));
    if (alerts.length > bannerLimit) rows.push(element("p", {}, strings.moreAlerts(alerts.length - bannerLimit)));
    if (alerts.length) {
      if (this.#isStuck) rows.push(element("p", {}, strings.notNotified));
      rows.push(element("button", { type: "button", onclick: () => this.#acknowledge(alerts) }, strings.takeCare));
    }
    this.element.replaceChildren(...rows);
    this.#dialog?.draw();
  }

  /** Ends banner and tones here at once, and on all other devices by way of the host. */
  async #acknowledge(alerts) {
    for (const { id } of alerts) this.#shown.delete(id);
    this.#draw();
    this.#stopBell();
    for (const { id } of alerts.slice().reverse()) {
      const answer = await this.login.fetch("v1/events/ack", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ id }),
      }).catch(() => null);
      if (answer?.ok) continue;
      this.element.append(element("p", {}, answer?.status === 403 ? strings.onlyHere : strings.causes.unreachable));
      setTimeout(() => this.#draw(), 5000);
      return;
    }
  }

  /** Rings, if an alert is shown that may wake somebody. */
  #ring() {
    if (!this.#banner.some((alert) => !alert.quiet && !alert.over)) return;
    this.bell.rings = 0;
    this.bell.sound();
  }

  /** Ends the tones once all alerts are acknowledged, or are over and have been heard. */
  #stopBell() {
    const loud = this.#banner.filter((alert) => !alert.quiet);
    if (!loud.length || loud.every((alert) => alert.over) && this.bell.rings >= leastRings) this.bell.acknowledge();
  }

  /** Uncovers the banner, and notifies of what goes on once all that comes together has come. */
  #announce(alert) {
    this.began();
    if (!this.#new.size) {
      setTimeout(() => {
        const going = [...this.#new].map((id) => this.#alerts.get(id)).filter((one) => one && !one.by && !one.over);
        this.#new.clear();
        for (const one of going.slice(-bannerLimit)) this.#notify(one);
      }, collecting);
    }
    this.#new.add(alert.id);
  }

  /** Takes the notification of an alert back. */
  async #dismiss(id) {
    this.#notices.get(id)?.close();
    this.#notices.delete(id);
    const worker = await this.#worker;
    const open = await worker?.getNotifications?.().catch(() => []) ?? [];
    for (const notice of open) if (notice.data?.id === id) notice.close();
  }

  async #notify(alert) {
    if (alert.quiet || !this.isWanted || globalThis.Notification?.permission !== "granted") return;
    const { id, camera } = alert;
    const options = {
      body: details(alert), tag: tag(alert), icon: "page/icon.png", requireInteraction: true, data: { id, camera },
    };
    // Nobody waits for a worker where the page itself may notify. A phone lets the worker alone do that.
    if (!this.#registration?.active && this.#notifyHere(alert, options)) return;
    let isStuck = false;
    try {
      await within(workerTime, this.#notifyByWorker(alert, options), Stuck);
    } catch (error) {
      // It may be over by now.
      isStuck = error instanceof Stuck && !alert.by && !alert.over && !this.#notifyHere(alert, options);
    }
    if (isStuck === this.#isStuck) return;
    this.#isStuck = isStuck;
    this.#draw();
  }

  /** Shows a notification by the worker, once it is active. A browser without a worker shows none. */
  async #notifyByWorker(alert, options) {
    const worker = await active(this.#worker);
    if (!worker) return;
    const before = await worker.getNotifications({ tag: options.tag });
    // The same alert may have come by Web Push.
    const isKnown = before.some((one) => one.data?.id === alert.id);
    await worker.showNotification(title(alert), { ...options, renotify: !isKnown, silent: isKnown });
  }

  /** Shows a notification by the page; `false` where the browser does not allow that. */
  #notifyHere(alert, options) {
    try {
      const notice = new Notification(title(alert), options);
      notice.onclick = () => focus();
      this.#notices.set(alert.id, notice);
      return true;
    } catch {
      return false;
    }
  }

  /** Adds the pictures of an alert to its line; of before the alert, and of after it where there is one by now. */
  async #show(alert, item) {
    for (const [moment, words] of Object.entries(strings.moments)) {
      const answer = await this.login.fetch(`v1/events/${alert.id}/${moment}.jpg`).catch(() => null);
      if (!answer?.ok || item.querySelector(`.${moment}`)) continue;
      const image = element(`img.${moment}`, { alt: words });
      image.src = URL.createObjectURL(await answer.blob());
      image.addEventListener("load", () => URL.revokeObjectURL(image.src), { once: true });
      item.append(element("figure", {}, image, element("figcaption", {}, words)));
    }
  }

  /** A dialog with the last alerts, as they are while it is open. */
  #list() {
    const items = new Map();
    const list = element("ul.viewers", { "aria-live": "off" });
    const dialog = element("dialog.phones", { "aria-label": strings.events }, element("h2", {}, strings.events), list,
      element("button", { type: "button", onclick: () => dialog.close() }, strings.close));
    const draw = () => {
      const alerts = [...this.#alerts.values()].reverse();
      list.replaceChildren(...alerts.map((alert) => {
        // The pictures stay while the words change.
        const item = items.get(alert.id) ?? element("li", {}, element("span", {}, title(alert)), element("button", {
          type: "button", "aria-label": `${strings.pictures}: ${title(alert)}`, onclick: () => this.#show(alert, item),
        }, strings.pictures), element("span.faint"));
        items.set(alert.id, item);
        item.querySelector("button").hidden = !alert.pictures;
        write(item.querySelector(".faint"), [
          new Date(alert.time).toLocaleDateString(), details(alert), alert.over ? strings.over(time(alert.over)) : strings.goesOn,
          alert.by,
        ].filter((word) => word).join(" · "));
        return item;
      }));
      if (!alerts.length) list.replaceChildren(element("li", {}, strings.noEvents));
    };
    this.#dialog = { draw };
    dialog.addEventListener("close", () => {
      this.#dialog = null;
      dialog.remove();
    });
    return { element: dialog, open: () => { draw(); dialog.showModal(); } };
  }
}
