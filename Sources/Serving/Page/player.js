// One camera on the page: it connects, watches that it lives, and connects again for as long as it takes.

import { Alarm } from "./alarm.js";
import { Liveness, patience } from "./liveness.js";
import { showPictures } from "./mjpeg.js";
import { Refusal, Session } from "./whep.js";

const pauses = [0, 500, 1000, 2000, 4000];
/** The time for a connection to come about, in milliseconds. */
const openingTime = 8000;
/** The time after which a dead line is an alarm. */
const alarmDelay = 1500;
/** The interval at which the other side is asked whether the camera is well, in milliseconds. */
const healthInterval = 2000;
/** The cause that a state of the camera is (`/healthz`). */
const causes = {
  waiting: "camera", disconnected: "camera", absent: "camera", stalled: "failed", failed: "failed", stuck: "failed",
  starting: "starting", frozen: "covered",
};
/** The time after which WebRTC is tried again while pictures come one by one. */
const retryTime = 60_000;

/**
 * The player's `state`: `connecting`, `live`, `dead` with a `cause`, or `pictures` with the `reason` why there is no
 * WebRTC. `changed` is called with each change.
 */
export class Player {
  state = "connecting";
  cause = null;
  reason = null;
  /** Whether the browser wants a touch before it plays. */
  needsTouch = false;
  alarm = new Alarm();
  #session = null;
  #liveness = null;
  #attempt = 0;
  #timer = null;
  #alarmTimer = null;
  #isOver = false;
  #pictures = null;
  #hasBeenLive = false;
  #isOut = false;
  #changes = 0;
  /** Whether the line lives, and the camera or its microphone does not. */
  #isUnwell = false;
  #hasHadSound = false;

  constructor(camera, login, video, image, changed) {
    Object.assign(this, { camera, login, video, image, changed });
    this.wake = () => { if (!document.hidden && this.state === "dead") this.#again(0); };
    addEventListener("online", this.wake);
    document.addEventListener("visibilitychange", this.wake);
    // An iPhone pauses the video as it leaves full screen.
    this.resume = () => { if (!this.#isOver && !document.hidden) this.play(); };
    video.addEventListener("pause", this.resume);
    this.healthTimer = setInterval(() => this.#checkHealth(), healthInterval);
  }

  get connection() { return this.#session?.connection ?? null; }

  start() {
    if (!("RTCPeerConnection" in window)) return this.#showPictures("unsupported");
    const codecs = RTCRtpReceiver.getCapabilities?.("video")?.codecs ?? null;
    if (codecs && !codecs.some((codec) => codec.mimeType.toLowerCase() === "video/h264")) {
      return this.#showPictures("noH264");
    }
    this.#connect();
  }

  close() {
    this.#isOver = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#alarmTimer);
    clearInterval(this.healthTimer);
    removeEventListener("online", this.wake);
    document.removeEventListener("visibilitychange", this.wake);
    this.video.removeEventListener("pause", this.resume);
    this.#end();
    this.#pictures?.abort();
    this.alarm.disarm();
  }

  /** Plays the video, without sound where the browser allows sound only after a touch. */
  async play() {
    try {
      await this.video.play();
      this.#setNeedsTouch(false);
    } catch (error) {
      if (error.name !== "NotAllowedError") return;
      if (this.video.muted) return this.#setNeedsTouch(true);
      this.video.muted = true;
      this.changed(this);
      await this.play();
    }
  }

  /** Arms the alarm, which rings at once where the line is dead by now. To be called by a touch. */
  async arm() {
    await this.alarm.arm();
    if (this.#isOut) this.alarm.sound();
    this.changed(this);
  }

  #setNeedsTouch(needsTouch) {
    if (this.needsTouch === needsTouch) return;
    this.needsTouch = needsTouch;
    this.changed(this);
  }

  #set(state, cause = null) {
    this.#changes += 1;
    if (this.state === state && this.cause === cause) return;
    (this.state = state), (this.cause = cause);
    const isOut = state === "dead";
    if (isOut !== this.#isOut) {
      this.#isOut = isOut;
      clearTimeout(this.#alarmTimer);
      // Once for each time that the line dies, whatever causes are found meanwhile. A line that comes back does not end
      // the alarm: only a person does.
      if (isOut) this.#alarmTimer = setTimeout(() => { this.alarm.sound(); this.changed(this); }, alarmDelay);
    }
    this.changed(this);
  }

  /** Says that the line is dead at once, and then what the other side says about it, if nothing has changed by then. */
  async #die(cause) {
    this.#set("dead", cause);
    const change = this.#changes;
    const found = await this.#findCause();
    if (change === this.#changes && !this.#isOver) this.#set("dead", found === "well" ? cause : found);
  }

  #end() {
    this.#liveness?.stop();
    this.#session?.close();
    (this.#liveness = null), (this.#session = null);
  }

  /** Connects again, after a pause that grows. */
  #again(pause = pauses[Math.min(this.#attempt, pauses.length - 1)]) {
    if (this.#isOver || this.#pictures) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), pause);
  }

  async #connect() {
    if (this.#isOver || this.#pictures) return;
    this.#end();
    this.#attempt += 1;
    const session = new Session(this.login);
    this.#session = session;
    const isCurrent = () => this.#session === session && !this.#isOver;
    clearTimeout(this.#timer);
    // A path that swallows packets says nothing.
    this.#timer = setTimeout(() => {
      if (!isCurrent()) return;
      if (!this.#hasBeenLive && this.#attempt > 2) return this.#showPictures("blocked");
      this.#again();
      this.#die(this.cause ?? "unreachable");
    }, openingTime);
    try {
      await session.open(`cameras/${encodeURIComponent(this.camera)}/whep`, (stream) => {
        if (!isCurrent() || this.video.srcObject === stream) return;
        this.video.srcObject = stream;
        this.play();
      }, (state) => {
        if (!isCurrent()) return;
        if (state === "connected") this.#watch(isCurrent);
        if (state === "failed" || state === "closed") {
          this.#again();
          this.#die(this.cause ?? "unreachable");
        }
      });
    } catch (error) {
      if (isCurrent()) this.#refused(error instanceof Refusal ? error : new Refusal(0, String(error)));
    }
  }

  /** Does what a refused offer asks for. */
  #refused(refusal) {
    clearTimeout(this.#timer);
    if (refusal.status === 406) return this.#showPictures("noH264");
    if (refusal.status === 501) return this.#showPictures("noServer");
    this.#again();
    if (refusal.status === 401 || refusal.status === 403) return this.#set("dead", "refused");
    this.#die(this.cause ?? "unreachable");
  }

  #watch(isCurrent) {
    if (this.#liveness) return;
    this.#liveness = new Liveness(this.video, () => this.connection, (cause) => {
      if (!isCurrent()) return;
      clearTimeout(this.#timer);
      if (cause === null) {
        (this.#attempt = 0), (this.#hasBeenLive = true);
        return this.#isUnwell ? this.#checkHealth() : this.#set("live");
      }
      // Where the other side is well and the picture stands still, the session may be the fault.
      this.#again(Math.max(2000, pauses[Math.min(this.#attempt, pauses.length - 1)]));
      this.#die(cause);
    });
    this.#liveness.start();
  }

  /** Asks the other side what is wrong: a cause, or "well". */
  async #findCause() {
    if (navigator.onLine === false) return "offline";
    try {
      const answer = await this.login.fetch("healthz", { signal: AbortSignal.timeout(2000) });
      if (answer.status === 401 || answer.status === 403) return "refused";
      const { cameras } = await answer.json();
      // A refusal of another kind, as of too many log-ins, says nothing about the camera.
      if (!cameras) return this.cause ?? "unreachable";
      const camera = cameras?.find((one) => one.name === this.camera);
      if (!camera) return "camera";
      if (camera.sound === "present") this.#hasHadSound = true;
      if (!camera.healthy) return causes[camera.state] ?? "failed";
      return camera.sound === "absent" && this.#hasHadSound ? "microphone" : "well";
    } catch {
      return "unreachable";
    }
  }

  /** Notices that the camera or its microphone is lost: pictures of a placeholder, and silence, go on. */
  async #checkHealth() {
    const isAlive = this.state === "live" || this.state === "pictures";
    if (!isAlive && !this.#isUnwell) return;
    const change = this.#changes;
    const found = await this.#findCause();
    if (change !== this.#changes || this.#isOver) return;
    if (found === "well") {
      if (!this.#isUnwell) return;
      this.#isUnwell = false;
      if (this.#pictures) this.#set("pictures");
      else if (this.#liveness?.cause === null) this.#set("live");
    } else if (found !== "unreachable" && found !== "offline") {
      this.#isUnwell = true;
      this.#set("dead", found);
    }
  }

  /** Shows pictures one by one, without sound, and asks for them again where they end. */
  async #showPictures(reason) {
    this.#end();
    clearTimeout(this.#timer);
    this.reason = reason;
    let last = performance.now();
    // A browser that can do more tries again; others cannot learn it.
    const end = reason === "blocked" || reason === "noServer" ? last + retryTime : Infinity;
    this.#pictures = new AbortController();
    const watch = setInterval(() => {
      if (performance.now() - last < patience) return;
      if (!this.#isOut) this.#die("unreachable");
      // What has come to a stop is asked for anew.
      last = performance.now();
      this.#pictures?.abort();
    }, 500);
    for (let attempt = 0; !this.#isOver && (performance.now() < end || this.#isOut); attempt += 1) {
      this.#pictures = new AbortController();
      const over = setTimeout(() => this.#pictures?.abort(), Math.min(end - performance.now(), 2 ** 31 - 1));
      try {
        const path = `cameras/${encodeURIComponent(this.camera)}/stream.mjpg?fps=10`;
        await showPictures(this.login, path, this.image, this.#pictures.signal, (time) => {
          (last = time), (attempt = 0);
          if (!this.#isUnwell) this.#set("pictures");
        });
      } catch {
        // Asked for again.
      }
      clearTimeout(over);
      if (performance.now() >= end && !this.#isOut) break;
      await new Promise((resolve) => setTimeout(resolve, pauses[Math.min(attempt + 1, pauses.length - 1)]));
    }
    clearInterval(watch);
    if (this.#isOver) return;
    (this.#pictures = null), (this.reason = null), (this.#attempt = 1);
    this.#set("connecting");
    this.#connect();
  }
}
