// Watches that pictures and sound really come, and says why they do not.

const interval = 250;

/** The time without a picture, or without a packet of sound, after which the line is dead, in milliseconds. */
const patience = 3000;

/** Packets that come so much later than the last picture belong to pictures that are not decoded. In milliseconds. */
const packetTime = 1000;

/** A page that has not run for this long was asleep: nobody knows what came meanwhile. In milliseconds. */
const sleepTime = 5000;

export class Liveness {
  /**
   * `null` while the line is alive, `undefined` before its first picture; otherwise what is missing: "noPicture" (never
   * a picture yet), "undecoded" (packets come, and no picture can be decoded), "frozen", "silent".
   */
  cause = undefined;
  #video;
  #tell;
  #session = null;
  #figures = null;
  #isReading = false;
  #hasPicture = false;
  #lastPicture = 0;
  #lastPacket = -Infinity;
  #lastSound = 0;
  #lastLook = 0;
  #timer = null;
  #frame = null;

  /**
   * @param {HTMLVideoElement} video
   * @param {() => void} tell is called after each change of `cause`
   */
  constructor(video, tell) {
    this.#video = video;
    this.#tell = tell;
  }

  start() {
    const now = performance.now();
    (this.#lastPicture = now), (this.#lastSound = now), (this.#lastLook = now);
    this.#watchFrames();
    this.#timer = setInterval(() => this.#look(), interval);
  }

  stop() {
    clearInterval(this.#timer);
    this.#timer = null;
    if (this.#frame !== null) this.#video.cancelVideoFrameCallback(this.#frame);
  }

  /** Watches this session from now on; null for pictures that come one by one, as `sawPicture` tells. */
  follow(session) {
    (this.#session = session), (this.#figures = null);
    // A line that is dead is so until picture and sound really come.
    if (this.cause === null || this.cause === undefined) this.#lastSound = performance.now();
  }

  sawPicture() {
    this.#lastPicture = performance.now();
    this.#hasPicture = true;
    if (this.#timer !== null && this.cause !== null) this.#judge();
  }

  #watchFrames() {
    if (!this.#video.requestVideoFrameCallback) return;
    this.#frame = this.#video.requestVideoFrameCallback(() => {
      // Chromium draws a black frame in place of a track that has ended.
      if (this.#video.srcObject?.getVideoTracks().some((track) => track.readyState === "live")) this.sawPicture();
      this.#watchFrames();
    });
  }

  #look() {
    const now = performance.now();
    if (now - this.#lastLook > sleepTime && this.cause === null) {
      (this.#lastPicture = now), (this.#lastSound = now);
    }
    this.#lastLook = now;
    this.#read();
    this.#judge();
  }

  /** Reads what the session has received since the last time. */
  async #read() {
    const session = this.#session;
    if (this.#isReading || !session) return;
    this.#isReading = true;
    const figures = await session.figures().catch(() => null);
    this.#isReading = false;
    if (!figures || session !== this.#session) return;
    const before = this.#figures ?? { sound: 0, packets: 0, decoded: 0 };
    this.#figures = figures;
    const now = performance.now();
    if (figures.sound !== before.sound) this.#lastSound = now;
    if (figures.packets !== before.packets) this.#lastPacket = now;
    // A page in the background draws nothing, nor does a paused video: what is decoded counts.
    const isDrawn = !document.hidden && !this.#video.paused && this.#video.requestVideoFrameCallback;
    if (!isDrawn && figures.decoded > before.decoded) this.sawPicture();
  }

  #judge() {
    const cause = this.#missing();
    if (cause === this.cause) return;
    this.cause = cause;
    this.#tell();
  }

  #missing() {
    const now = performance.now();
    if (now - this.#lastPicture > patience) {
      // The packets of the last picture itself do not count.
      if (this.#lastPacket - this.#lastPicture > packetTime) return "undecoded";
      return this.#hasPicture ? "frozen" : "noPicture";
    }
    if (!this.#hasPicture) return undefined;
    return this.#session?.hasSound && now - this.#lastSound > patience ? "silent" : null;
  }
}
