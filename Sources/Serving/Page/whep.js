// One WebRTC session with a camera: an offer by HTTP, an answer, and then picture and sound (draft-ietf-wish-whep).

/** The time for the answer to an offer, and to its session's end, in milliseconds. */
const answerTime = 4000;
/** The time from the answer until the connection is there, in milliseconds. */
const connectionTime = 6000;

/** The longest time that a refusal may ask for, in milliseconds. */
const longestPause = 3_600_000;

/** The offer was refused; `status` is that of HTTP, 0 if no answer came. */
export class Refusal extends Error {
  /** @param {string | null} retryAfter the value of `Retry-After`; null without it */
  constructor(status, message, retryAfter = null) {
    super(message);
    // `true` if a later offer may be answered.
    const mayPass = retryAfter !== null;
    // The time until that offer, in milliseconds; null if none is named. nightjar names seconds, and never a date.
    const pause = mayPass && /^\d+$/.test(retryAfter) ? Math.min(Math.max(retryAfter * 1000, 1000), longestPause) : null;
    Object.assign(this, { status, mayPass, pause });
  }
}

/** The offer was answered, and no packet came through. */
export class Unconnected extends Error {}

export class Session {
  /** Picture and sound, from the answer on. */
  stream = new MediaStream();
  /** `true` if the camera sends sound. */
  hasSound = false;
  /** `true` from the answer on. */
  isAnswered = false;
  /** `true` if the connection is lost for good. */
  isLost = false;
  #connection = null;
  #url = null;
  #login;
  #request = new AbortController();

  /**
   * @param {Login} login
   * @param {() => void} changed is called when the answer is there, and when the connection is lost
   */
  constructor(login, changed) {
    this.#login = login;
    this.changed = changed;
  }

  get connection() { return this.#connection; }

  /**
   * Connects to the camera at `url`; returns once packets may come.
   * @throws {Refusal | Unconnected}
   */
  async open(url) {
    const connection = new RTCPeerConnection({ bundlePolicy: "max-bundle", rtcpMuxPolicy: "require" });
    this.#connection = connection;
    connection.addTransceiver("video", { direction: "recvonly" });
    const sound = connection.addTransceiver("audio", { direction: "recvonly" });
    connection.ontrack = ({ track, receiver }) => {
      // Live: nothing is kept back for smoothness.
      if ("jitterBufferTarget" in receiver) receiver.jitterBufferTarget = 0;
      this.stream.addTrack(track);
    };
    const connected = this.#connected(connection);
    await connection.setLocalDescription();
    // The other side finds this one by its checks: no candidate of this side needs to be told.
    const answer = await this.#exchange(url, connection.localDescription.sdp);
    if (this.#connection !== connection) throw new Unconnected("closed");
    try {
      await connection.setRemoteDescription({ type: "answer", sdp: answer });
    } catch (error) {
      throw new Unconnected(String(error));
    }
    this.hasSound = sound.currentDirection === "recvonly";
    this.isAnswered = true;
    this.changed();
    const timer = setTimeout(() => connected.refuse(new Unconnected("no packet")), connectionTime);
    await connected.promise.finally(() => clearTimeout(timer));
  }

  /** A promise of the connection, and the function that breaks it. */
  #connected(connection) {
    let refuse;
    const promise = new Promise((resolve, reject) => {
      refuse = reject;
      connection.onconnectionstatechange = () => {
        const state = connection.connectionState;
        if (state === "connected") resolve();
        if (state !== "failed" && state !== "closed") return;
        reject(new Unconnected(state));
        this.isLost = true;
        this.changed();
      };
    });
    // Nobody waits for it before the answer.
    promise.catch(() => {});
    this.refuse = refuse;
    return { promise, refuse };
  }

  /** Sends the offer; the answer. */
  async #exchange(url, offer) {
    const timer = setTimeout(() => this.#request.abort(), answerTime);
    try {
      const answer = await this.#login.fetch(url, {
        method: "POST", body: offer, headers: { "Content-Type": "application/sdp" }, signal: this.#request.signal,
      });
      const text = await answer.text();
      if (!answer.ok) throw new Refusal(answer.status, text, answer.headers.get("Retry-After"));
      this.#url = new URL(answer.headers.get("Location"), answer.url).href;
      if (this.#connection === null) this.close();
      return text;
    } catch (error) {
      throw error instanceof Refusal ? error : new Refusal(0, "no answer");
    } finally {
      clearTimeout(timer);
    }
  }

  /** What has come so far: packets of sound, packets of pictures, and decoded pictures. */
  async figures() {
    const figures = { sound: 0, packets: 0, decoded: 0 };
    const statistics = await this.#connection?.getStats();
    for (const report of statistics?.values() ?? []) {
      if (report.type !== "inbound-rtp") continue;
      if (report.kind === "audio") figures.sound = report.packetsReceived;
      if (report.kind === "video") (figures.packets = report.packetsReceived), (figures.decoded = report.framesDecoded ?? 0);
    }
    return figures;
  }

  /**
   * Ends the session, here and there.
   * @param {boolean} isLeaving `true` if the page is being closed: nothing of it runs later
   */
  close(isLeaving = false) {
    this.changed = () => {};
    this.#request.abort();
    this.refuse?.(new Unconnected("closed"));
    const connection = this.#connection;
    const url = this.#url;
    this.#connection = this.#url = null;
    for (const track of this.stream.getTracks()) track.stop();
    if (url) {
      // The connection ends afterwards: the other side ends the session with it, and would know none to delete then.
      const request = new AbortController();
      const timer = setTimeout(() => request.abort(), answerTime);
      this.#login.fetch(url, { method: "DELETE", keepalive: true, signal: request.signal }).catch(() => {}).finally(() => {
        clearTimeout(timer);
        connection?.close();
      });
    }
    if (!url || isLeaving) connection?.close();
  }
}
