#!/usr/bin/env python3
"""Chromium that watches a camera by WebRTC, in the network namespace in which this runs: browser.py URL NAME:PASSWORD

It prints `playing` with the first picture. At the end of the input it prints a JSON object and ends: `pictures` are [time on
CLOCK_MONOTONIC, time on the stream's clock, pixels], `sounds` are [time on CLOCK_MONOTONIC, time on the stream's clock] of packets
of sound as they arrive, before any buffer; what Chromium counts of the pictures, of lost packets and of the sound that it made up.
"""
import base64
import http.server
import json
import os
import ssl
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from measurement.browser import Browser  # noqa: E402

PAGE = """<!DOCTYPE html><title>viewer</title><video autoplay playsinline></video>"""
WORKER = """
onrtctransform = ({ transformer }) => {
  transformer.readable.pipeThrough(new TransformStream({
    transform(frame, controller) {
      postMessage([performance.timeOrigin + performance.now(), frame.getMetadata().rtpTimestamp ?? frame.timestamp]);
      controller.enqueue(frame);
    }
  })).pipeTo(transformer.writable);
};
"""
OFFER = """
const peer = window.peer = new RTCPeerConnection();
const video = document.querySelector("video");
const stream = video.srcObject = new MediaStream();
window.pictures = [];
window.sounds = [];
const worker = new Worker("worker.js");
worker.onmessage = ({ data }) => sounds.push(data);
for (const kind of ["video", "audio"]) {
  const { receiver } = peer.addTransceiver(kind, { direction: "recvonly" });
  if (kind === "audio") receiver.transform = new RTCRtpScriptTransform(worker);
}
peer.ontrack = ({ track }) => stream.addTrack(track);
const seen = (_, frame) => {
  pictures.push([performance.timeOrigin + performance.now(), frame.rtpTimestamp, frame.width * frame.height]);
  video.requestVideoFrameCallback(seen);
};
video.requestVideoFrameCallback(seen);
return peer.setLocalDescription().then(() => peer.localDescription.sdp);
"""
ANSWER = 'return peer.setRemoteDescription({ type: "answer", sdp: arguments[0] }).then(() => true);'
FIGURES = """
return peer.getStats().then((reports) => {
  const told = {};
  for (const report of reports.values())
    if (report.type === "inbound-rtp")
      for (const name of arguments[0]) if (name in report) told[`${report.kind} ${name}`] = report[name];
  return told;
});
"""
# Names are asked of nobody: here nobody answers, and Chromium would wait for half a minute before its first page.
OPTIONS = ["--autoplay-policy=no-user-gesture-required", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
COUNTED = ["framesDecoded", "framesDropped", "freezeCount", "totalFreezesDuration", "packetsReceived", "packetsLost", "nackCount",
           "retransmittedPacketsReceived", "pliCount", "concealedSamples", "totalSamplesReceived"]


class Files(http.server.BaseHTTPRequestHandler):
    """The page and its worker: a page of 127.0.0.1 may use what else needs HTTPS."""

    def do_GET(self):
        kind, text = {"/": ("text/html", PAGE), "/worker.js": ("text/javascript", WORKER)}.get(self.path, ("text/plain", ""))
        self.send_response(200 if text else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


def ask(url, login, offer):
    headers = {"Content-Type": "application/sdp", "Authorization": "Basic " + base64.b64encode(login.encode()).decode()}
    request = urllib.request.Request(url + "/whep", data=offer.encode(), headers=headers)
    with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=30) as answer:
        return answer.read().decode()


def seconds(events, clock, offset):
    """Times of CLOCK_MONOTONIC and of the stream, whose timestamps have 32 bits."""
    found, unwrapped, last = [], 0, None
    for at, stamp, *more in events:
        if stamp is None:
            continue
        if last is not None:
            difference = (stamp - last) & 0xffffffff
            unwrapped += difference - (1 << 32 if difference >= 1 << 31 else 0)
        last = stamp
        found.append([round(at / 1000 + offset, 4), round(unwrapped / clock, 4), *more])
    return found


def main():
    url, login = sys.argv[1:]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(folder, OPTIONS, size=(1300, 900))
        try:
            browser.open(f"http://127.0.0.1:{server.server_port}/")
            browser.run(ANSWER, ask(url, login, browser.run(OFFER)))
            browser.await_true("pictures.length > 0")
            print("playing", flush=True)
            sys.stdin.read()
            before = time.monotonic()
            now = browser.run("return performance.timeOrigin + performance.now()") / 1000
            offset = (before + time.monotonic()) / 2 - now
            told = browser.run(FIGURES, COUNTED)
            pictures, sounds = browser.run("return [pictures, sounds]")
        finally:
            browser.close()
    print(json.dumps({"pictures": seconds(pictures, 90_000, offset), "sounds": seconds(sounds, 48_000, offset), **told,
                      "version": browser.version}), flush=True)


if __name__ == "__main__":
    main()
