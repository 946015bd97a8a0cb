// One WebRTC session with a camera: an offer by HTTP, an answer, and then picture and sound (draft-ietf-wish-whep).

/** The request was refused; `status` is that of HTTP, 0 if no answer came. */
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class Session {
  #connection = null;
  #url = null;
  #login;

  /** @param {Login} login */
  constructor(login) { this.#login = login; }

  get connection() { return this.#connection; }

  /**
   * Connects to the camera at `url`.
   * @param {(stream: MediaStream) => void} play takes the stream once a track is there
   * @param {(state: string) => void} changed takes the connection's states
   */
  async open(url, play, changed) {
    const connection = new RTCPeerConnection({ bundlePolicy: "max-bundle", rtcpMuxPolicy: "require" });
    this.#connection = connection;
    const stream = new MediaStream();
    connection.addTransceiver("video", { direction: "recvonly" });
    connection.addTransceiver("audio", { direction: "recvonly" });
    connection.ontrack = ({ track, receiver }) => {
      // Live: nothing is kept back for smoothness.
      if ("jitterBufferTarget" in receiver) receiver.jitterBufferTarget = 0;
      stream.addTrack(track);
      play(stream);
    };
    connection.onconnectionstatechange = () => changed(connection.connectionState);
    await connection.setLocalDescription();
    // The other side finds this one by its checks: no candidate of this side needs to be told.
    let answer;
    try {
      answer = await this.#login.fetch(url, {
        method: "POST", body: connection.localDescription.sdp, headers: { "Content-Type": "application/sdp" },
      });
    } catch {
      throw new Refusal(0, "no answer");
    }
    if (!answer.ok) throw new Refusal(answer.status, await answer.text());
    this.#url = new URL(answer.headers.get("Location"), answer.url).href;
    if (connection.signalingState === "closed") return this.close();
    await connection.setRemoteDescription({ type: "answer", sdp: await answer.text() });
  }

  /** Ends the session, here and there. */
  close() {
    this.#connection?.close();
    this.#connection = null;
    if (!this.#url) return;
    // Even while the page is being closed.
    this.#login.fetch(this.#url, { method: "DELETE", keepalive: true }).catch(() => {});
    this.#url = null;
  }
}
