// Tones that repeat, and vibration, until somebody acknowledges. A browser lets them sound only after a touch, so that
// they are armed by one.

export class Alarm {
  #context = null;
  #timer = null;
  /** The number of times that it has rung since it began to. */
  rings = 0;
  /** Is called each time that it has rung. */
  rang = () => {};

  /** The tones are in Hz, and the times in milliseconds. Without others, those of a line that is dead. */
  constructor({ tones = [880, 660, 880], interval = 1500, vibration = [300, 100, 300] } = {}) {
    Object.assign(this, { tones, interval, vibration });
  }

  get isArmed() { return this.#context !== null; }
  get isSounding() { return this.#timer !== null; }

  /** To be called by a touch. */
  async arm() {
    // On an iPhone the ring switch does not silence what is played.
    if (navigator.audioSession) navigator.audioSession.type = "playback";
    this.#context ??= new AudioContext();
    await this.#context.resume();
  }

  async disarm() {
    this.acknowledge();
    await this.#context?.close();
    this.#context = null;
  }

  sound() {
    if (!this.isArmed || this.isSounding) return;
    this.rings = 0;
    this.#timer = setInterval(() => this.#ring(), this.interval);
    this.#ring();
  }

  acknowledge() {
    clearInterval(this.#timer);
    this.#timer = null;
    navigator.vibrate?.(0);
  }

  #ring() {
    const context = this.#context;
    // A phone may have stopped it meanwhile.
    context.resume().catch(() => {});
    for (const [index, frequency] of this.tones.entries()) {
      const start = context.currentTime + index * 0.35;
      const tone = new OscillatorNode(context, { type: "square", frequency });
      const gain = new GainNode(context, { gain: 0 });
      gain.gain.setValueAtTime(0.4, start);
      gain.gain.setValueAtTime(0, start + 0.3);
      tone.connect(gain).connect(context.destination);
      tone.start(start);
      tone.stop(start + 0.32);
    }
    navigator.vibrate?.(this.vibration);
    this.rings += 1;
    this.rang();
  }
}
