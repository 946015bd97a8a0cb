// The pictures one by one, where WebRTC does not work. By fetch, so that the log-in goes along as a header.

/** The time without a picture after which they are asked for anew, in milliseconds. */
const patience = 2500;
/** The least time from one request to the next, in milliseconds. */
const interval = 1000;

/** Shows the pictures of a camera, and asks for them anew whenever they end or stop. */
export class Pictures {
  #isOver = false;
  #request = null;
  #view;

  /**
   * @param {string} path where the pictures are
   * @param {HTMLImageElement} image shows them
   * @param {() => void} shown is called after each picture that is shown
   * @param {() => Promise<void>} reached comes true once a request is worth while, where one has brought no picture
   */
  constructor(login, path, image, shown, reached) {
    Object.assign(this, { login, path, reached });
    this.#view = new NewestPicture(image, shown);
  }

  async start() {
    while (!this.#isOver) {
      const pause = new Promise((resolve) => setTimeout(resolve, interval));
      const request = new AbortController();
      this.#request = request;
      const abort = () => request.abort();
      let timer = setTimeout(abort, patience);
      let hasCome = false;
      await takePictures(this.login, this.path, request.signal, (picture) => {
        clearTimeout(timer);
        timer = setTimeout(abort, patience);
        hasCome = true;
        this.#view.show(picture);
      }).catch(() => {});
      clearTimeout(timer);
      await pause;
      if (!hasCome && !this.#isOver) await this.reached();
    }
  }

  stop() {
    this.#isOver = true;
    this.#request?.abort();
    this.#view.end();
  }
}

/**
 * The newest picture in an image. One that comes while another is being loaded waits for that: a slow browser would otherwise
 * end each at the next, and show none.
 */
class NewestPicture {
  #url = null;
  #waiting = null;
  /** The time since which one is being loaded; null while none is. */
  #begun = null;
  #isOver = false;

  constructor(image, shown) {
    this.image = image;
    image.onload = () => {
      try {
        shown();
      } finally {
        this.#next();
      }
    };
    image.onerror = () => this.#next();
  }

  /** @param {Blob} picture takes the place of one that waits */
  show(picture) {
    if (this.#isOver) return;
    this.#waiting = picture;
    // One that is neither loaded nor refused in so long a time never will be.
    if (this.#begun === null || performance.now() - this.#begun > 10_000) this.#next();
  }

  #next() {
    const [picture, former] = [this.#waiting, this.#url];
    this.#waiting = null;
    this.#begun = picture && performance.now();
    if (!picture) return;
    this.image.src = this.#url = URL.createObjectURL(picture);
    if (former) URL.revokeObjectURL(former);
  }

  end() {
    this.#isOver = true;
    this.image.onload = this.image.onerror = null;
    this.#waiting = null;
    if (this.#url) URL.revokeObjectURL(this.#url);
  }
}

/** Takes the pictures of one request, until `signal` ends it. */
async function takePictures(login, path, signal, taken) {
  const answer = await login.fetch(path, { signal });
  if (!answer.ok) throw new Error(await answer.text());
  const reader = answer.body.getReader();
  let buffer = new Uint8Array(0);
  const decoder = new TextDecoder("latin1");
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
      taken(new Blob([buffer.slice(end + 4, end + 4 + length)], { type: "image/jpeg" }));
      buffer = buffer.slice(end + 4 + length);
    }
    if (buffer.length > 16e6) throw new Error("no picture within 16 MB");
  }
}
