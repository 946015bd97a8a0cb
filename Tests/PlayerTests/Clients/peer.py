"""A WebRTC peer by aiortc, which shares no code with any browser: peer.py URL [key=value …]

It asks for picture and sound by WHEP, decodes both, and prints one JSON object. Keys:
seconds=N       how long it watches
video=N         and until it has so many pictures,
audio=N         so many frames of sound,
loud=N          a sample beyond so much,
until=FILE      and this file is there: two minutes at most,
limit=N         or N seconds
login=NAME:PASSWORD
token=TOKEN     a log-in as Bearer instead
offer=FUNCTION  what it does to its offer: fingerprint (another certificate's), noFingerprint, noH264
port=N          it sends to this port of 127.0.0.1 instead of the answer's candidates
tcp=1           it connects by TCP
goodbye=0       it ends without a word
fir=1           it asks for key frames by FIR instead of watching for `seconds`, and tells how many it had after each
"""

import asyncio
import base64
import json
import os
import re
import ssl
import struct
import sys
import time
import urllib.error
import urllib.request

import aiortc.rtcicetransport
from aiortc import RTCPeerConnection, RTCSessionDescription

import tcp

options = {"login": "", "token": "", "seconds": "4", "video": "0", "audio": "0", "loud": "-1", "until": "", "limit": "120", "offer": "", "port": "", "tcp": "0", "goodbye": "1", "fir": "0",
           **dict(one.split("=", 1) for one in sys.argv[2:])}
context = ssl._create_unverified_context()


def request(url, method, body=None):
    headers = {"Content-Type": "application/sdp"} if body else {}
    if options["login"]:
        headers["Authorization"] = "Basic " + base64.b64encode(options["login"].encode()).decode()
    if options["token"]:
        headers["Authorization"] = "Bearer " + options["token"]
    wanted = urllib.request.Request(url, data=body, headers=headers, method=method)
    try:
        with urllib.request.urlopen(wanted, context=context, timeout=30) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def changed(offer):
    if options["offer"] == "fingerprint":
        return re.sub(r"(a=fingerprint:sha-256 )(..)", lambda found: found[1] + f"{int(found[2], 16) ^ 1:02X}", offer)
    if options["offer"] == "noFingerprint":
        return "".join(one for one in offer.splitlines(True) if not one.startswith("a=fingerprint"))
    if options["offer"] == "noH264":
        types = re.findall(r"a=rtpmap:(\d+) H264/", offer)
        lines = [one for one in offer.split("\r\n") if not any(
            re.match(rf"a=(rtpmap|fmtp|rtcp-fb):{number} ", one) for number in types)]
        return "\r\n".join(
            " ".join(word for word in one.split(" ") if word not in types) if one.startswith("m=video") else one
            for one in lines)
    return offer


def redirected(answer):
    """The answer with one candidate only, at the port of a relay."""
    lines = [one for one in answer.split("\r\n") if not one.startswith("a=candidate")]
    place = lines.index("a=end-of-candidates")
    return "\r\n".join(
        [*lines[:place], f"a=candidate:1 1 udp 2130706431 127.0.0.1 {options['port']} typ host", *lines[place:]])


async def ask_for_key_frames(peer, answer, told):
    """A FIR, the same one again, and another one. In the pictures after each there is room for the key frame."""
    receiver = peer.getTransceivers()[0].receiver
    ssrc = int(re.search(r"a=ssrc:(\d+) ", answer[answer.index("m=video"):])[1])

    async def pictures(count):
        wanted = told["frames"].get("video", 0) + count
        for _ in range(600):
            if told["frames"].get("video", 0) >= wanted:
                return
            await asyncio.sleep(0.05)

    def request(number):
        # RFC 5104 section 4.3.1.1: version 2 and format 4, type 206, five words; the sender, no media source, and of the one
        # entry the source, the number, and three reserved bytes.
        return struct.pack("!BBHIIIB3x", 0x84, 206, 4, 5, 0, ssrc, number)

    async def key_frames(count):
        for _ in range(600):
            if told["key"] >= count:
                return
            await asyncio.sleep(0.05)

    await pictures(40)
    first = told["key"]
    told["keys"] = [first]
    for number, answers in ((7, 1), (7, 1), (8, 2)):
        await receiver.transport._send_rtp(request(number))
        # Pictures that wait in this process, because it got no processor, come before the answer.
        await key_frames(first + answers)
        await pictures(40)
        told["keys"].append(told["key"])


async def offered(offer):
    """The status, the headers and the body of the answer. Where the program says that it may answer later, as in a start that keeps
    the processor busy, the offer comes again, as the page's does; for a minute at most."""
    limit = time.monotonic() + 60
    while True:
        status, headers, answer = await asyncio.to_thread(request, sys.argv[1], "POST", offer.encode())
        pause = float(headers.get("Retry-After", "inf")) if status == 406 else float("inf")
        if time.monotonic() + pause > limit:
            return status, headers, answer
        await asyncio.sleep(pause)


def dropped():
    """The datagrams for which the kernel had no room in this process's sockets, because nobody read them for a while."""
    own = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            own.add(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:  # That of the list itself.
            pass
    count = 0
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        if os.path.exists(table):
            with open(table) as file:
                rows = [line.split() for line in file][1:]
            count += sum(int(row[-1]) for row in rows if f"socket:[{row[9]}]" in own)
    return count


def is_content(told):
    """Whether it has got what it watches for."""
    return (all(told["frames"].get(kind, 0) >= int(options[kind]) for kind in ("video", "audio"))
            and told["loudest"] > int(options["loud"]) and (not options["until"] or os.path.exists(options["until"])))


async def main():
    if options["tcp"] == "1":
        aiortc.rtcicetransport.Connection = tcp.Connection
    told = {"frames": {}, "first": {}, "sizes": [], "runs": [], "loudest": 0, "gap": 0, "key": 0}
    peer = RTCPeerConnection()
    peer.addTransceiver("video", direction="recvonly")
    peer.addTransceiver("audio", direction="recvonly")
    begun, last = time.monotonic(), {}

    async def consume(track):
        while True:
            try:
                frame = await track.recv()
            except Exception:  # The track has ended.
                return
            now = time.monotonic()
            told["first"].setdefault(track.kind, now - begun)
            told["frames"][track.kind] = told["frames"].get(track.kind, 0) + 1
            if track.kind == "video":
                told["gap"] = max(told["gap"], now - last.get("video", now))
                last["video"] = now
                told["key"] += int(frame.key_frame)
                if [frame.width, frame.height] not in told["sizes"]:
                    told["sizes"].append([frame.width, frame.height])
                # The pictures of one size after another: width, height, and how many.
                if told["runs"][-1:] and told["runs"][-1][:2] == [frame.width, frame.height]:
                    told["runs"][-1][2] += 1
                else:
                    told["runs"].append([frame.width, frame.height, 1])
            else:
                told["loudest"] = max(told["loudest"], int(abs(frame.to_ndarray()).max()))

    tasks = []
    peer.on("track", lambda track: tasks.append(asyncio.ensure_future(consume(track))))
    await peer.setLocalDescription(await peer.createOffer())
    offer = changed(peer.localDescription.sdp)
    told["status"], headers, answer = await offered(offer)
    told["answer"] = answer
    if told["status"] == 201:
        location = headers["Location"]
        wanted = redirected(answer) if options["port"] else answer
        await peer.setRemoteDescription(RTCSessionDescription(wanted, "answer"))
        if options["fir"] == "1":
            await ask_for_key_frames(peer, answer, told)
        else:
            await asyncio.sleep(float(options["seconds"]))
            limit = time.monotonic() + float(options["limit"])
            while not is_content(told) and time.monotonic() < limit:
                await asyncio.sleep(0.05)
        told["lost"] = sum(one.packetsLost for one in (await peer.getStats()).values() if one.type == "inbound-rtp")
        if told["lost"] > 0:
            # What got lost before this peer, and not in it. The kernel's table can miss a socket while others come and go.
            told["dropped"] = max(dropped() for _ in range(5))
            told["lost"] = max(0, told["lost"] - told["dropped"])
        if options["goodbye"] == "1":
            root = re.match(r"https://[^/]+", sys.argv[1])[0]
            told["deleted"] = [(await asyncio.to_thread(request, root + location, "DELETE"))[0] for _ in range(2)]
    print(json.dumps(told), flush=True)
    if options["goodbye"] == "1":
        await peer.close()
    else:
        os._exit(0)


asyncio.run(main())
