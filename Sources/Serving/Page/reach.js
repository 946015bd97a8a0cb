// Finds out that the other side can be reached again.

/**
 * The times for a sign, in milliseconds. TCP sends its first packet again after 1 s, 3 s and 7 s; Chromium makes an attempt
 * wait for up to 5 s where 16 have failed within some minutes.
 */
const [time, laterTime, count] = [4000, 10_000, 12];

/**
 * Signs that the other side can be reached, of connections that are made for nothing else.
 *
 * Chromium hands the connection attempt of a request that was given up to the next request, with the pauses of TCP that
 * grow: after half a minute on a network that swallows packets, nothing would be sent for many seconds. An attempt of a
 * WebSocket ends with it. That the server refuses it is sign enough. Other browsers need no sign.
 */
export class Signs {
  #attempts = 0;

  /** Waits for a sign: `true` once there is one, `false` after some seconds without. */
  next() {
    if (!navigator.userAgentData) return true;
    this.#attempts += 1;
    return new Promise((resolve) => {
      const url = new URL("page/icon.svg", location.href);
      url.protocol = url.protocol.replace("http", "ws");
      const socket = new WebSocket(url);
      const end = (isThere) => {
        clearTimeout(timer);
        removeEventListener("online", again);
        socket.onerror = socket.onopen = null;
        socket.close();
        resolve(isThere);
      };
      const timer = setTimeout(() => end(false), this.#attempts > count ? laterTime : time);
      // Another network: the attempt was made on the former one.
      const again = () => end(false);
      addEventListener("online", again);
      socket.onerror = socket.onopen = () => end(true);
    });
  }
}
