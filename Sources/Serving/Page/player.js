// One camera on the page: it connects, watches that it lives, and connects again for as long as it takes.

import { Alarm } from "./alarm.js";
import { Liveness } from "./liveness.js";
import { Pictures } from "./mjpeg.js";
import { Signs } from "./reach.js";
import { Refusal, Session } from "./whep.js";

/** The time from a dead line to its alarm. With the time until a line counts as dead, it is less than five seconds. */
const alarmDelay = 1000;
/** The interval at which the other side is asked how the camera is, and the time for its answer, in milliseconds. */
const healthInterval = 2000;
const healthTime = 4000;
/** The time for the answer of a line that is dead by all signs, in milliseconds. */
const probeTime = 1500;
/** The interval at which a dead line is tried, in milliseconds. */
const probeInterval = 1000;
/** After a sign, connections of before may be dead still: more than one request is sent, at this interval. */
const askInterval = 200;
const askCount = 6;
/** The time without a connection after which pictures are shown one by one meanwhile, in milliseconds. */
const firstTime = 2000;
/** The time from the connection to its first picture, in milliseconds. */
const pictureTime = 4000;
/** The first and the longest pause between sessions that deliver nothing though the other side answers, in milliseconds. */
const [firstPause, longestPause] = [500, 8000];
/** The number of sessions without a decoded picture after which the pictures are shown one by one. */
const undecodedLimit = 2;
/** The trouble that a state of the camera is (`/healthz`). */
const troubles = {
  waiting: "camera", disconnected: "camera", absent: "camera", stalled: "failed", failed: "failed", stuck: "failed",
  starting: "starting", frozen: "covered",
};
/** The states of the sound (`/healthz`) in which nobody hears the room, though packets of sound come. */
const deadSound = ["absent", "silent", "stuck"];

/**
 * The player's `state`: `connecting`, `live`, `dead` with a `cause`, or `pictures` with the `reason` why there is no
 * WebRTC. `changed` is called with each change.
 */
export class Player {
  state = "connecting";
  cause = null;
  reason = null;
  /** `true` if the browser wants a touch before it plays. */
  needsTouch = false;
  /** `true` or `false` once it is known whether the camera has sound. */
  hasSound = null;
  /**
   * The longest time after which WebRTC is tried again while pictures come one by one, if no refusal names another, in
   * milliseconds.
   */
  retryTime = 60_000;
  alarm = new Alarm();
  #session = null;
  #next = null;
  #liveness;
  #pictures = null;
  #isOver = false;
  #isKeeping = false;
  #isReaching = false;
  #isAsking = false;
  #hasPlayed = false;
  /** What the other side has said last about the camera; null if all is well. */
  #trouble = null;
  /** "unreachable" or "offline" if the last question was not answered; null if it was. */
  #wayTrouble = null;
  #questions = 0;
  #answered = 0;
  #hasHadMicrophone = false;
  #isOut = false;
  #alarmTimer = null;
  #healthTimer = null;
  /** The time until the next offer that the last refusal has named, in milliseconds; null if there is none. */
  #refusedFor = null;
  /** Ends the present pause. */
  #wake = () => {};

  constructor(camera, login, video, image, changed) {
    Object.assign(this, { camera, login, video, image, changed });
    this.#liveness = new Liveness(video, () => {
      this.#judge();
      if (this.#isPlaying) this.#wake();
      else this.#keepSession();
    });
    this.look = () => { if (!document.hidden) this.#wake(); };
    addEventListener("online", this.look);
    document.addEventListener("visibilitychange", this.look);
    // An iPhone pauses the video as it leaves full screen.
    this.resume = () => { if (!this.#isOver && !document.hidden) this.play(); };
    video.addEventListener("pause", this.resume);
  }

  /** `true` if the line is alive, whatever the camera does. */
  get isConnected() { return this.#liveness.cause === null; }

  get connection() { return this.#session?.connection ?? null; }

  start() {
    this.#liveness.start();
    this.#healthTimer = setInterval(() => this.#checkHealth(), healthInterval);
    const codecs = window.RTCRtpReceiver?.getCapabilities?.("video")?.codecs;
    if (!("RTCPeerConnection" in window)) this.#showPictures("unsupported");
    else if (codecs && !codecs.some((codec) => /^video\/h26[45]$/i.test(codec.mimeType))) this.#showPictures("noH264");
    else this.#keepSession();
  }

  /** @param {boolean} isLeaving `true` if the page is being closed */
  close(isLeaving = false) {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#alarmTimer);
    clearInterval(this.#healthTimer);
    removeEventListener("online", this.look);
    document.removeEventListener("visibilitychange", this.look);
    this.video.removeEventListener("pause", this.resume);
    this.#liveness.stop();
    this.#session?.close(isLeaving);
    this.#next?.close(isLeaving);
    this.#pictures?.stop();
    this.#wake();
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

  /** Derives the state from what comes, and from what the other side says. */
  #judge() {
    if (this.#isOver) return;
    const missing = this.#liveness.cause;
    // While pictures come, the way is well, and the camera is as was said last.
    const trouble = (missing === null ? null : this.#wayTrouble) ?? this.#trouble;
    // A page that has only begun shows what it is refused for.
    const isDead = missing === undefined ? trouble === "refused" : missing !== null || trouble !== null;
    const alive = missing === undefined ? "connecting" : this.reason ? "pictures" : "live";
    this.#set(isDead ? "dead" : alive, isDead ? trouble ?? missing : null);
  }

  #set(state, cause) {
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

  /** Asks how the camera is, unless the last question is not answered yet, or nobody can be reached. */
  async #checkHealth() {
    if (this.#isAsking || (this.#isReaching && this.#wayTrouble !== null)) return;
    this.#isAsking = true;
    await this.#ask(healthTime);
    this.#isAsking = false;
  }

  /**
   * Asks the other side how the camera is. Returns "answered", or "failed" or "silent" where no answer came; another
   * question's answer may end it by `signal`.
   */
  async #ask(time, signal) {
    const number = ++this.#questions;
    const request = new AbortController();
    const abort = () => request.abort();
    const timer = setTimeout(abort, time);
    signal?.addEventListener("abort", abort);
    let outcome = "answered";
    let [trouble, wayTrouble] = [undefined, null];
    try {
      trouble = await this.#findTrouble(request.signal);
    } catch {
      outcome = request.signal.aborted ? "silent" : "failed";
      // A browser may wrongly say that it is not on line: this counts only where no answer came.
      wayTrouble = navigator.onLine === false ? "offline" : "unreachable";
    }
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
    if (!this.#isOver && !signal?.aborted) this.#learn(number, trouble, wayTrouble);
    return outcome;
  }

  /**
   * Takes the answer to a question, in which `trouble` is undefined if nothing is said about the camera. Answers may
   * overtake each other: the one to the latest question counts.
   */
  #learn(number, trouble, wayTrouble) {
    if (number <= this.#answered) return;
    this.#answered = number;
    if (trouble !== undefined) this.#trouble = trouble;
    this.#wayTrouble = wayTrouble;
    this.#judge();
  }

  /** Returns what the other side says of the camera, null for a camera that is well, and undefined if it says nothing. */
  async #findTrouble(signal) {
    const answer = await this.login.fetch("healthz", { signal });
    if (answer.status === 401 || answer.status === 403) return "refused";
    const { cameras } = await answer.json();
    // A refusal of another kind, as of too many log-ins.
    if (!cameras) return undefined;
    const camera = cameras.find((one) => one.name === this.camera);
    if (!camera) return "camera";
    if (camera.sound === "present") this.#hasHadMicrophone = true;
    if (!camera.healthy) return troubles[camera.state] ?? "failed";
    return deadSound.includes(camera.sound) && this.#hasHadMicrophone ? "microphone" : null;
  }

  get #isPlaying() {
    return this.#session !== null && !this.#session.isLost && !this.reason && this.#liveness.cause === null;
  }

  /** Connects, and connects anew as long as no session delivers. */
  async #keepSession() {
    if (this.#isOver || this.#isPlaying) return;
    // In the midst of a pause: it is over.
    if (this.#isKeeping) return this.reason ? undefined : this.#wake();
    if (["unsupported", "noH264", "noHEVC"].includes(this.reason)) return;
    this.#isKeeping = true;
    let [count, undecoded] = [0, 0];
    // The first offer asks by itself whether the other side answers.
    let isReached = !this.#hasPlayed && this.#session === null;
    while (!this.#isOver && !this.#isPlaying) {
      if (!isReached) await this.#reach();
      isReached = false;
      // What was away may have come back by itself.
      if (this.#isOver || this.#isPlaying) break;
      const hadReason = this.reason !== null;
      const outcome = await this.#connect();
      if (this.#isOver || this.#isPlaying) break;
      if (outcome === "noH264" || outcome === "noHEVC") {
        this.#showPictures(outcome);
        break;
      }
      undecoded = outcome === "undecoded" ? undecoded + 1 : 0;
      if (outcome === "notNow" || outcome === "noServer") this.#showPictures(outcome);
      else if (outcome === "unconnected" && (!this.#hasPlayed || count > 0)) this.#showPictures("blocked");
      else if (undecoded >= undecodedLimit) this.#showPictures("undecoded");
      if (this.reason) {
        this.#session?.close();
        this.#session = null;
        if (!hadReason) count = 0;
      }
      // A first session may have been slow, and no more. One with a picture gets its time for the sound.
      const pause = Math.max(firstPause * 2 ** count, outcome === "playing" ? 1000 : 0);
      await this.#rest(this.reason ? this.#refusedFor ?? Math.min(4 * pause, this.retryTime) : Math.min(pause, longestPause));
      count = outcome === "noAnswer" ? 0 : count + 1;
    }
    this.#isKeeping = false;
  }

  #rest(time) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, time);
      this.#wake = () => { clearTimeout(timer); resolve(); };
    });
  }

  /** Returns once the other side answers, or the session delivers again. */
  async #reach() {
    this.#isReaching = true;
    // Where requests fail at once, a further one does no harm. Those that nobody answers wait for a sign.
    const signs = new Signs();
    for (let isSilent = false; !this.#isOver && !this.#isPlaying;) {
      const begun = performance.now();
      const awaitsSign = isSilent && navigator.onLine !== false;
      if (!awaitsSign || await signs.next()) {
        const outcome = await this.#askAgainAndAgain(awaitsSign ? askCount : 1);
        if (outcome === "answered") break;
        isSilent = outcome === "silent";
      }
      await this.#rest(begun + probeInterval - performance.now());
    }
    this.#isReaching = false;
  }

  /** Asks until one of `count` questions is answered. Returns "answered", "failed" or "silent". */
  async #askAgainAndAgain(count) {
    const isAnswered = new AbortController();
    const questions = [];
    for (let number = 0; number < count && !isAnswered.signal.aborted && !this.#isOver && !this.#isPlaying; number += 1) {
      questions.push(this.#ask(probeTime, isAnswered.signal).then((outcome) => {
        if (outcome === "answered") isAnswered.abort();
        return outcome;
      }));
      await Promise.race([...questions, new Promise((resolve) => setTimeout(resolve, askInterval))]);
    }
    const outcomes = await Promise.all(questions);
    return ["answered", "silent"].find((outcome) => outcomes.includes(outcome)) ?? "failed";
  }

  /** Opens a session beside the present one, which may still come back, and puts it in that one's place once it is there. */
  async #connect() {
    const session = new Session(this.login, () => this.#sessionChanged(session));
    this.#next = session;
    this.#refusedFor = null;
    let early = null;
    try {
      early = setTimeout(() => {
        if (session.isAnswered && !this.#hasPlayed) this.#showPictures("blocked");
      }, firstTime);
      await session.open(`cameras/${encodeURIComponent(this.camera)}/whep`);
      clearTimeout(early);
      if (this.#isOver || this.#isPlaying) {
        session.close();
        return "playing";
      }
      this.#session?.close();
      this.#session = session;
      if (this.video.srcObject !== session.stream) this.#attach(session);
      if (!this.reason) this.#liveness.follow(session);
      const outcome = await this.#firstPicture(session);
      if (outcome === "playing") this.#plays(session);
      return outcome;
    } catch (error) {
      session.close();
      if (!(error instanceof Refusal)) return "unconnected";
      this.#refusedFor = error.pause;
      // The host has H.264 for this browser, and cannot make it now.
      if (error.status === 406 && error.mayPass) return "notNow";
      // The refusal names the codec of the camera.
      const missing = error.message.includes("stream is H265") ? "noHEVC" : "noH264";
      return { 0: "noAnswer", 406: missing, 501: "noServer" }[error.status] ?? "refused";
    } finally {
      clearTimeout(early);
      this.#next = null;
    }
  }

  #sessionChanged(session) {
    if (session === this.#next && session.isAnswered) {
      this.hasSound = session.hasSound;
      // The sooner the video has it, the sooner the first picture is there.
      if (!this.#session) this.#attach(session);
      this.changed(this);
    }
    if (session === this.#session && session.isLost) this.#keepSession();
  }

  #attach(session) {
    this.video.srcObject = session.stream;
    this.play();
  }

  /** Waits for the first picture: "playing", or what there is instead. */
  async #firstPicture(session) {
    const end = performance.now() + pictureTime;
    let figures = { packets: 0, decoded: 0 };
    while (performance.now() < end && !session.isLost && !this.#isOver) {
      figures = await session.figures();
      if (figures.decoded > 0) return "playing";
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return session.isLost ? "unconnected" : figures.packets > 0 ? "undecoded" : "noPicture";
  }

  #plays(session) {
    this.#hasPlayed = true;
    if (!this.reason) return;
    this.#pictures?.stop();
    (this.#pictures = null), (this.reason = null);
    this.#liveness.follow(session);
    this.#judge();
    this.changed(this);
  }

  /** Shows pictures one by one, without sound, until a session delivers. */
  #showPictures(reason) {
    if (this.#isOver || this.reason === reason) return;
    this.reason = reason;
    this.#liveness.follow(null);
    const path = `cameras/${encodeURIComponent(this.camera)}/stream.mjpg?fps=10`;
    if (!this.#pictures) {
      this.#pictures = new Pictures(this.login, path, this.image, () => this.#liveness.sawPicture(), () => this.#reach());
      this.#pictures.start();
    }
    this.#judge();
    this.changed(this);
  }
}
