// Watches that pictures and sound really come, and says why they do not.

const interval = 250;

/** The time without a picture, or without a packet of sound, after which the line is called dead, in milliseconds. */
export const patience = 3000;

export class Liveness {
  #video;
  #lastPicture = 0;
  #lastSound = 0;
  #soundPackets = 0;
  #hasSound = false;
  #timer = null;
  #frame = null;
  #hasPicture = false;
  #isOver = false;

  /**
   * @param {HTMLVideoElement} video
   * @param {() => RTCPeerConnection | null} connection
   * @param {(cause: "frozen" | "silent" | null) => void} tell takes each change; null is alive, which nothing is
   *   before its first picture
   */
  constructor(video, connection, tell) {
    this.#video = video;
    this.connection = connection;
    this.tell = tell;
    this.cause = undefined;
  }

  /** Begins to watch; what has not come yet is given the same time. */
  start() {
    const now = performance.now();
    (this.#lastPicture = now), (this.#lastSound = now);
    this.#watchFrames();
    this.#timer ??= setInterval(() => this.#look(), interval);
  }

  stop() {
    this.#isOver = true;
    clearInterval(this.#timer);
    if (this.#frame !== null) this.#video.cancelVideoFrameCallback?.(this.#frame);
  }

  #watchFrames() {
    if (this.#isOver || !this.#video.requestVideoFrameCallback) return;
    this.#frame = this.#video.requestVideoFrameCallback(() => {
      this.#sawPicture();
      this.#watchFrames();
    });
  }

  #sawPicture() {
    this.#lastPicture = performance.now();
    this.#hasPicture = true;
  }

  async #look() {
    const connection = this.connection();
    if (!connection || this.#isOver) return;
    let statistics;
    try { statistics = await connection.getStats(); } catch { return; }
    const now = performance.now();
    for (const report of statistics.values()) {
      if (report.type !== "inbound-rtp") continue;
      if (report.kind === "audio") {
        this.#hasSound = true;
        if (report.packetsReceived !== this.#soundPackets) this.#lastSound = now;
        this.#soundPackets = report.packetsReceived;
      } else if (report.kind === "video") {
        // A page in the background draws nothing, nor does a paused video: what is decoded counts.
        const isDrawn = !document.hidden && !this.#video.paused && this.#video.requestVideoFrameCallback;
        if (!isDrawn && report.framesDecoded > (this.framesDecoded ?? 0)) this.#sawPicture();
        this.framesDecoded = report.framesDecoded;
      }
    }
    const cause =
      now - this.#lastPicture > patience ? "frozen" : this.#hasSound && now - this.#lastSound > patience ? "silent" : null;
    if (cause === this.cause || (cause === null && !this.#hasPicture)) return;
    this.cause = cause;
    this.tell(cause);
  }
}
