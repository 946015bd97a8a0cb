// The log-in of this device, kept in its browser: a name with its password, or a token of its own.

const key = "nightjar-login";
/** The time for which a log-in that was refused is not tried again: each try makes all answers to this address slower. */
const refusedPause = 60_000;

/** What `action` returns; a browser that keeps nothing throws. */
function stored(action) {
  try { return action(); } catch { return undefined; }
}

export class Login {
  #authorization;
  #refusedUntil = 0;

  constructor() {
    this.#authorization = stored(() => sessionStorage.getItem(key) ?? localStorage.getItem(key)) ?? null;
  }

  get isThere() { return this.#authorization !== null; }

  /** Whether the log-in was refused less than a minute ago. */
  get isRefused() { return performance.now() < this.#refusedUntil; }

  /** The headers of a request. */
  get headers() { return this.#authorization ? { Authorization: this.#authorization } : {}; }

  /** Takes a name and a password; `remembers` keeps them after the browser has ended. */
  set(name, password, remembers) {
    const bytes = new TextEncoder().encode(`${name}:${password}`);
    this.#set(`Basic ${btoa(String.fromCharCode(...bytes))}`, remembers);
  }

  /** Takes the token of this device, and keeps it. */
  setToken(token) { this.#set(`Bearer ${token}`, true); }

  #set(text, remembers) {
    this.forget();
    this.#authorization = text;
    stored(() => (remembers ? localStorage : sessionStorage).setItem(key, text));
  }

  /** The same log-in, which this one's end does not forget. */
  copy() {
    const copy = new Login();
    copy.#authorization = this.#authorization;
    return copy;
  }

  forget() {
    this.#authorization = null;
    this.#refusedUntil = 0;
    stored(() => sessionStorage.removeItem(key));
    stored(() => localStorage.removeItem(key));
  }

  /** Requests a path with the log-in. */
  async fetch(path, options = {}) {
    if (this.isRefused) return new Response("", { status: 401 });
    const sent = this.#authorization;
    const answer = await fetch(path, {
      cache: "no-store", credentials: "omit", ...options, headers: { ...options.headers, ...this.headers },
    });
    if (answer.status === 401 && sent !== null && sent === this.#authorization) {
      this.#refusedUntil = performance.now() + refusedPause;
    }
    return answer;
  }
}
