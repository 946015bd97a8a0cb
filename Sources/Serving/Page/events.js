// The events of the host as they come, and those that were missed. By fetch: an EventSource sends no log-in.

import { Signs } from "./reach.js";

/** The time for an answer, and the time without a byte after which its line is dead: a comment comes every five seconds. In milliseconds. */
const [answerTime, patience] = [5000, 12_000];
/** The least time from one request to the next, in milliseconds. */
const interval = 1000;
/** The most events that are asked for at once. */
const historyLimit = 300;
/** The most characters of a message that is not over. */
const messageLimit = 64 << 10;

/** The messages of a stream of server-sent events, of which `text` is the next piece: https://html.spec.whatwg.org/multipage/server-sent-events.html */
export class Messages {
  #rest = "";

  take(text) {
    this.#rest += text.replaceAll("\r\n", "\n");
    const parts = this.#rest.split("\n\n");
    this.#rest = parts.pop();
    if (this.#rest.length > messageLimit) throw new Error("no event within 64 KiB");
    return parts.map((part) => {
      const message = { type: "message", data: "" };
      for (const line of part.split("\n")) {
        const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);
        if (field === "event") message.type = value;
        else if (field === "data") message.data += value;
      }
      return message;
    }).filter((message) => message.data);
  }
}

/** Follows the events, and connects again for as long as it takes. */
export class Events {
  /** The number of the last event; null before the history has been read. */
  last = null;
  #isOver = false;
  #request = null;
  #wake = () => {};

  /**
   * @param {(events: object[]) => void} began takes the history, oldest first; also anew, where events were missed for good
   * @param {(event: object) => void} came takes each event after it
   */
  constructor(login, began, came) {
    Object.assign(this, { login, began, came });
    this.again = () => { if (!document.hidden) this.#wake(); };
    addEventListener("online", this.again);
    document.addEventListener("visibilitychange", this.again);
    this.#follow();
  }

  close() {
    this.#isOver = true;
    removeEventListener("online", this.again);
    document.removeEventListener("visibilitychange", this.again);
    this.#request?.abort();
    this.#wake();
  }

  async #follow() {
    const signs = new Signs();
    while (!this.#isOver) {
      const pause = new Promise((resolve) => setTimeout(resolve, interval));
      this.#request = new AbortController();
      let hasCome = false;
      await this.#read(this.#request, () => { hasCome = true; }).catch(() => {});
      this.#request.abort();
      await pause;
      // A log-in that is refused, or a host that is away: as the browser says that it is online, or is shown again.
      if (!hasCome && !this.#isOver) {
        await Promise.race([signs.next(), new Promise((resolve) => { this.#wake = resolve; })]);
      }
    }
  }

  /** One request, until it ends or stands still. */
  async #read(request, read) {
    let timer = null;
    const limit = (milliseconds) => {
      clearTimeout(timer);
      timer = setTimeout(() => request.abort(), milliseconds);
    };
    const signal = request.signal;
    limit(answerTime);
    try {
      if (this.last === null) {
        const answer = await this.login.fetch(`v1/events/history?limit=${historyLimit}`, { signal });
        if (!answer.ok) throw new Error(answer.statusText);
        const { events } = await answer.json();
        limit(answerTime);
        this.last = events.at(-1)?.id ?? 0;
        this.began(events);
      }
      const answer = await this.login.fetch("v1/events", { signal, headers: { "Last-Event-ID": String(this.last) } });
      if (!answer.ok) throw new Error(answer.statusText);
      const messages = new Messages();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done || this.#isOver) return;
        read();
        limit(patience);
        for (const message of messages.take(value)) {
          const event = JSON.parse(message.data);
          // What is not kept any more, or another history: the numbers of one in memory begin anew with the program.
          if (message.type === "dropped" || event.id <= this.last) {
            this.last = null;
            return;
          }
          this.last = event.id;
          this.came(event);
        }
      }
    } finally {
      clearTimeout(timer);
    }
  }
}
