"""Passes datagrams between browsers and a server's UDP port on loopback, and loses those that a file names.

  udp-relay.py SERVER-PORT FILE

FILE holds words: "all" loses everything, "video" and "audio" lose these media on their way to the browsers. Prints the
relay's own port. Chromium offers Opus as payload type 111, and the server answers with the offer's payload types.
"""
import selectors
import socket
import sys

OPUS = 111
server, rules = ("127.0.0.1", int(sys.argv[1])), sys.argv[2]


def lost():
    with open(rules) as file:
        return file.read().split()


def medium(packet):
    """Of an RTP packet; None for STUN, DTLS and RTCP (RFC 7983, RFC 5761)."""
    if len(packet) < 12 or not 128 <= packet[0] < 192 or 192 <= packet[1] <= 223:
        return None
    return "audio" if packet[1] & 127 == OPUS else "video"


front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
front.bind(("127.0.0.1", 0))
print(front.getsockname()[1], flush=True)
polled = selectors.DefaultSelector()
polled.register(front, selectors.EVENT_READ)
# The socket for each browser, and the browser of each socket.
backs, browsers = {}, {}
while True:
    for key, _ in polled.select():
        packet, address = key.fileobj.recvfrom(65536)
        rules_now = lost()
        if "all" in rules_now:
            continue
        if key.fileobj is front:
            if address not in backs:
                back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                back.bind(("127.0.0.1", 0))
                backs[address], browsers[back] = back, address
                polled.register(back, selectors.EVENT_READ)
            backs[address].sendto(packet, server)
        elif medium(packet) not in rules_now:
            front.sendto(packet, browsers[key.fileobj])
