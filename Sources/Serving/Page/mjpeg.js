// The pictures one by one, where WebRTC does not work. By fetch, so that the log-in goes along as a header.

/** The time without a picture after which they are asked for anew, in milliseconds. */
const patience = 2500;
/** The least time from one request to the next, in milliseconds. */
const interval = 1000;

/** Shows the pictures of a camera, and asks for them anew whenever they end or stop. */
export class Pictures {
  #isOver = false;
  #request = null;

  /**
   * @param {string} path where the pictures are
   * @param {HTMLImageElement} image shows them
   * @param {() => void} shown is called after each picture
   * @param {() => Promise<void>} reached comes true once a request is worth while, where one has brought no picture
   */
  constructor(login, path, image, shown, reached) {
    Object.assign(this, { login, path, image, shown, reached });
  }

  async start() {
    while (!this.#isOver) {
      const pause = new Promise((resolve) => setTimeout(resolve, interval));
      const request = new AbortController();
      this.#request = request;
      const abort = () => request.abort();
      let timer = setTimeout(abort, patience);
      let hasCome = false;
      await showPictures(this.login, this.path, this.image, request.signal, () => {
        clearTimeout(timer);
        timer = setTimeout(abort, patience);
        hasCome = true;
        this.shown();
      }).catch(() => {});
      clearTimeout(timer);
      await pause;
      if (!hasCome && !this.#isOver) await this.reached();
    }
  }

  stop() {
    this.#isOver = true;
    this.#request?.abort();
  }
}

/** Shows the pictures of one request in `image`, until `signal` ends it. */
async function showPictures(login, path, image, signal, shown) {
  const answer = await login.fetch(path, { signal });
  if (!answer.ok) throw new Error(await answer.text());
  const reader = answer.body.getReader();
  let buffer = new Uint8Array(0);
  let url = null;
  const decoder = new TextDecoder("latin1");
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const joined = new Uint8Array(buffer.length + value.length);
      joined.set(buffer), joined.set(value, buffer.length);
      buffer = joined;
      for (;;) {
        // A part's headers are short; its length tells where it ends.
        const head = decoder.decode(buffer.subarray(0, 512));
        const end = head.indexOf("\r\n\r\n");
        const length = Number(/content-length: *(\d+)/i.exec(head.slice(0, end))?.[1]);
        if (end < 0 || !(length >= 0) || buffer.length < end + 4 + length) break;
        const picture = new Blob([buffer.slice(end + 4, end + 4 + length)], { type: "image/jpeg" });
        buffer = buffer.slice(end + 4 + length);
        const former = url;
        image.src = url = URL.createObjectURL(picture);
        if (former) URL.revokeObjectURL(former);
        shown();
      }
      if (buffer.length > 16e6) throw new Error("no picture within 16 MB");
    }
  } finally {
    if (url) URL.revokeObjectURL(url);
  }
}
