// Runs in the page before its own scripts: faults that a test switches on, and instruments that it reads.
(() => {
  const faults = window.faults = { relay: 0, offer: (text) => text, corrupts: false };

  // The alarm, as the loudspeaker gets it.
  const connect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (to, ...rest) {
    if (to instanceof AudioDestinationNode) {
      to.context.analyser ??= new AnalyserNode(to.context, { fftSize: 32768, smoothingTimeConstant: 0 });
      connect.call(this, to.context.analyser);
      window.alarmAnalyser = to.context.analyser;
    }
    return connect.call(this, to, ...rest);
  };
  /** The peak of the last two thirds of a second, and the loudest frequency. */
  window.hear = (analyser) => {
    if (!analyser) return { peak: 0, frequency: 0 };
    const samples = new Float32Array(analyser.fftSize);
    analyser.getFloatTimeDomainData(samples);
    const levels = new Float32Array(analyser.frequencyBinCount);
    analyser.getFloatFrequencyData(levels);
    const loudest = levels.indexOf(Math.max(...levels));
    return {
      peak: samples.reduce((peak, sample) => Math.max(peak, Math.abs(sample)), 0),
      frequency: loudest * analyser.context.sampleRate / analyser.fftSize,
    };
  };
  /** The sound of the camera, as the video plays it. */
  window.hearCamera = () => {
    const stream = document.querySelector("video").srcObject;
    if (!window.cameraAnalyser || window.cameraStream !== stream) {
      window.cameraStream = stream;
      const context = window.cameraContext ??= new AudioContext();
      context.resume();
      window.cameraAnalyser = new AnalyserNode(context, { fftSize: 32768, smoothingTimeConstant: 0 });
      connect.call(context.createMediaStreamSource(stream), window.cameraAnalyser);
    }
    return window.hear(window.cameraAnalyser);
  };

  // As Sources/Capture/Synthetic/BitmapFont.swift draws them.
  const font = Object.entries({
    0: ".###. #...# #..## #.#.# ##..# #...# .###.", 1: "..#.. .##.. ..#.. ..#.. ..#.. ..#.. .###.",
    2: ".###. #...# ....# ...#. ..#.. .#... #####", 3: ".###. #...# ....# ..##. ....# #...# .###.",
    4: "...#. ..##. .#.#. #..#. ##### ...#. ...#.", 5: "##### #.... ####. ....# ....# #...# .###.",
    6: "..##. .#... #.... ####. #...# #...# .###.", 7: "##### ....# ...#. ..#.. .#... .#... .#...",
    8: ".###. #...# #...# .###. #...# #...# .###.", 9: ".###. #...# #...# .#### ....# ...#. .##..",
    "#": ".#.#. .#.#. ##### .#.#. ##### .#.#. .#.#.", ":": "..... ..#.. ..... ..... ..... ..#.. .....",
    ".": "..... ..... ..... ..... ..... .##.. .##..",
  }).map(([character, drawing]) => [character, drawing.replaceAll(" ", "")]);
  /** A line of the test picture's text (0: clock, 1: number), read dot by dot; null where it cannot be read. */
  const readLine = (picture, line) => {
    const [width, height] = [picture.videoWidth ?? picture.naturalWidth, picture.videoHeight ?? picture.naturalHeight];
    if (!width) return null;
    // As Sources/Capture/Synthetic/TestPattern.swift paints it.
    const scale = Math.max(1, Math.min(Math.floor(Math.floor(width / 2) / 71), Math.floor(height / 40)));
    const boxWidth = Math.min(width, Math.floor(75 * scale / 2) * 2 + 2);
    const boxHeight = Math.min(height, 20 * scale);
    const side = Math.max(2, Math.floor(Math.min(width, height) / 24) * 2);
    const top = Math.max(0, Math.floor((height - boxHeight - 2 * scale - side) / 4) * 2) + (2 + 9 * line) * scale;
    const left = Math.floor((width - boxWidth) / 4) * 2 + 2 * scale;
    const canvas = window.readingCanvas ??= document.createElement("canvas");
    (canvas.width = 71 * scale), (canvas.height = 7 * scale);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(picture, -left, -top);
    const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
    let text = "";
    for (let place = 0; place < 12; place += 1) {
      let dots = "";
      for (let row = 0; row < 7; row += 1) {
        for (let column = 0; column < 5; column += 1) {
          let sum = 0;
          for (let dy = 0; dy < scale; dy += 1) {
            for (let dx = 0; dx < scale; dx += 1) {
              sum += data[((row * scale + dy) * canvas.width + (place * 6 + column) * scale + dx) * 4 + 1];
            }
          }
          dots += sum / scale / scale > 127 ? "#" : ".";
        }
      }
      const distances = font.map(([, drawing]) => [...drawing].filter((dot, index) => dot !== dots[index]).length);
      const least = Math.min(...distances);
      if (least > 3) return null;
      text += font[distances.indexOf(least)][0];
    }
    return text;
  };
  /** The number that the test picture shows, or null. */
  window.readNumber = (picture) => {
    const found = /^#(\d{11})$/.exec(readLine(picture, 1));
    return found && Number(found[1]);
  };
  /** The time of day that the test picture shows, in milliseconds, or null. */
  window.readClock = (picture) => {
    const found = /^(\d\d):(\d\d):(\d\d)\.(\d{3})$/.exec(readLine(picture, 0));
    return found && ((Number(found[1]) * 60 + Number(found[2])) * 60 + Number(found[3])) * 1000 + Number(found[4]);
  };

  if (!window.RTCPeerConnection) return;
  if (window.transforms) {
    // All that is received goes through here: decoders get pictures that are none.
    window.RTCPeerConnection = class extends RTCPeerConnection {
      constructor(configuration) {
        super({ ...configuration, encodedInsertableStreams: true });
        this.addEventListener("track", ({ track, receiver }) => {
          const { readable, writable } = receiver.createEncodedStreams();
          readable.pipeThrough(new TransformStream({
            transform(frame, controller) {
              if (faults.corrupts && track.kind === "video") frame.data = new Uint8Array(frame.data.byteLength).fill(255).buffer;
              controller.enqueue(frame);
            },
          })).pipeTo(writable).catch(() => {});
        });
      }
    };
  }
  const answered = RTCPeerConnection.prototype.setRemoteDescription;
  RTCPeerConnection.prototype.setRemoteDescription = function ({ type, sdp }) {
    const lines = sdp.split("\r\n").filter((line) => !faults.relay || !/^a=candidate:.* tcp /i.test(line));
    const through = faults.relay
      ? lines.map((line) => line.replace(/^(a=candidate:\S+ \d udp \d+ )\S+ \d+ /i, `$1127.0.0.1 ${faults.relay} `)) : lines;
    return answered.call(this, { type, sdp: through.join("\r\n") });
  };
  const fetched = window.fetch;
  window.fetch = (path, options = {}) =>
    fetched(path, options.method === "POST" && String(path).endsWith("whep") ? { ...options, body: faults.offer(options.body) } : options);
})();
