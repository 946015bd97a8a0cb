// The log-in of this device, kept in its browser: a name with its password.

const key = "nightjar-login";

/** What `action` returns; a browser that keeps nothing throws. */
function stored(action) {
  try { return action(); } catch { return undefined; }
}

export class Login {
  #authorization;

  constructor() {
    this.#authorization = stored(() => sessionStorage.getItem(key) ?? localStorage.getItem(key)) ?? null;
  }

  get isThere() { return this.#authorization !== null; }

  /** The headers of a request. */
  get headers() { return this.#authorization ? { Authorization: this.#authorization } : {}; }

  /** Takes a name and a password; `remembers` keeps them after the browser has ended. */
  set(name, password, remembers) {
    const bytes = new TextEncoder().encode(`${name}:${password}`);
    this.#set(`Basic ${btoa(String.fromCharCode(...bytes))}`, remembers);
  }

  #set(text, remembers) {
    this.forget();
    this.#authorization = text;
    stored(() => (remembers ? localStorage : sessionStorage).setItem(key, text));
  }

  forget() {
    this.#authorization = null;
    stored(() => sessionStorage.removeItem(key));
    stored(() => localStorage.removeItem(key));
  }

  /** Requests a path with the log-in. */
  fetch(path, options = {}) {
    return fetch(path, {
      cache: "no-store", credentials: "omit", ...options, headers: { ...options.headers, ...this.headers },
    });
  }
}
