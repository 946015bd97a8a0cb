"""A WebRTC peer by aiortc, which shares no code with any browser: peer.py URL [key=value …]

It asks for picture and sound by WHEP, decodes both, and prints one JSON object. Keys:
seconds=N       how long it watches
login=NAME:PASSWORD
offer=FUNCTION  what it does to its offer: fingerprint (another certificate's), noH264
goodbye=0       it ends without a word
"""

import asyncio
import base64
import json
import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.request

from aiortc import RTCPeerConnection, RTCSessionDescription

options = {"login": "", "seconds": "4", "offer": "", "goodbye": "1", **dict(one.split("=", 1) for one in sys.argv[2:])}
context = ssl._create_unverified_context()


def request(url, method, body=None):
    headers = {"Content-Type": "application/sdp"} if body else {}
    if options["login"]:
        headers["Authorization"] = "Basic " + base64.b64encode(options["login"].encode()).decode()
    wanted = urllib.request.Request(url, data=body, headers=headers, method=method)
    try:
        with urllib.request.urlopen(wanted, context=context, timeout=30) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def changed(offer):
    if options["offer"] == "fingerprint":
        return re.sub(r"(a=fingerprint:sha-256 )(..)", lambda found: found[1] + f"{int(found[2], 16) ^ 1:02X}", offer)
    if options["offer"] == "noH264":
        types = re.findall(r"a=rtpmap:(\d+) H264/", offer)
        lines = [one for one in offer.split("\r\n") if not any(
            re.match(rf"a=(rtpmap|fmtp|rtcp-fb):{number} ", one) for number in types)]
        return "\r\n".join(
            " ".join(word for word in one.split(" ") if word not in types) if one.startswith("m=video") else one
            for one in lines)
    return offer


async def main():
    told = {"frames": {}, "first": {}, "sizes": [], "loudest": 0}
    peer = RTCPeerConnection()
    peer.addTransceiver("video", direction="recvonly")
    peer.addTransceiver("audio", direction="recvonly")
    begun = time.monotonic()

    async def consume(track):
        while True:
            try:
                frame = await track.recv()
            except Exception:  # The track has ended.
                return
            told["first"].setdefault(track.kind, time.monotonic() - begun)
            told["frames"][track.kind] = told["frames"].get(track.kind, 0) + 1
            if track.kind == "video":
                if [frame.width, frame.height] not in told["sizes"]:
                    told["sizes"].append([frame.width, frame.height])
            else:
                told["loudest"] = max(told["loudest"], int(abs(frame.to_ndarray()).max()))

    tasks = []
    peer.on("track", lambda track: tasks.append(asyncio.ensure_future(consume(track))))
    await peer.setLocalDescription(await peer.createOffer())
    offer = changed(peer.localDescription.sdp)
    told["status"], headers, answer = await asyncio.to_thread(request, sys.argv[1], "POST", offer.encode())
    told["answer"] = answer
    if told["status"] == 201:
        location = headers["Location"]
        await peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        await asyncio.sleep(float(options["seconds"]))
        told["lost"] = sum(one.packetsLost for one in (await peer.getStats()).values() if one.type == "inbound-rtp")
        if options["goodbye"] == "1":
            root = re.match(r"https://[^/]+", sys.argv[1])[0]
            told["deleted"] = [(await asyncio.to_thread(request, root + location, "DELETE"))[0] for _ in range(2)]
    print(json.dumps(told), flush=True)
    if options["goodbye"] == "1":
        await peer.close()
    else:
        os._exit(0)


asyncio.run(main())
