#!/usr/bin/python3
"""One handshake of aiortc with a server of WHEP, through a relay: handshake.py URL SECONDS

It prints its offer's answer, reads the relay's port, and prints one JSON object: the seconds until ICE and until DTLS were
complete, null if they were not within SECONDS, and the session's path. It needs Debian's python3-aiortc.
"""
import asyncio
import json
import ssl
import sys
import time
import urllib.request

from aiortc import RTCPeerConnection, RTCSessionDescription

CONTEXT = ssl._create_unverified_context()


def ask(url, offer):
    request = urllib.request.Request(url, data=offer.encode(), headers={"Content-Type": "application/sdp"})
    with urllib.request.urlopen(request, context=CONTEXT, timeout=30) as answer:
        return answer.headers["Location"], answer.read().decode()


async def main():
    url, seconds = sys.argv[1], float(sys.argv[2])
    peer, told = RTCPeerConnection(), {"ice": None, "all": None}
    peer.addTransceiver("video", direction="recvonly")
    await peer.setLocalDescription(await peer.createOffer())
    told["location"], answer = ask(url, peer.localDescription.sdp)
    print(json.dumps(answer), flush=True)
    port = int(sys.stdin.readline())
    lines = [one for one in answer.split("\r\n") if not one.startswith("a=candidate")]
    lines.insert(lines.index("a=end-of-candidates"), f"a=candidate:1 1 udp 2130706431 127.0.0.1 {port} typ host")
    begun = time.monotonic()
    await peer.setRemoteDescription(RTCSessionDescription("\r\n".join(lines), "answer"))
    while time.monotonic() - begun < seconds and told["all"] is None and peer.connectionState != "failed":
        await asyncio.sleep(0.005)
        now = time.monotonic() - begun
        if told["ice"] is None and peer.iceConnectionState == "completed":
            told["ice"] = now
        if peer.connectionState == "connected":
            told["all"] = now
    print(json.dumps(told), flush=True)


asyncio.run(main())
