"""Takes RTP, with the kernel's time of each packet, and H.264 out of it (RFC 6184)."""
import socket
import struct
import threading
import time
from typing import NamedTuple

SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33


class Packet(NamedTuple):
    """`arrival` in seconds on CLOCK_MONOTONIC, `is_last` of its picture."""
    arrival: float
    sequence: int
    timestamp: int
    is_last: bool
    source: int
    payload: bytes


def open_socket(room=4 << 20, port=0):
    """A socket on loopback that notes the kernel's times, with room for so many bytes where that is allowed."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, room)
    except PermissionError:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    try:
        receiver.bind(("127.0.0.1", port))
    except OSError:
        receiver.close()
        raise
    return receiver


def open_pair(room=4 << 20):
    """An even port for RTP, and the next for RTCP."""
    for _ in range(100):
        first = open_socket(room)
        port = first.getsockname()[1]
        if port % 2 == 0:
            try:
                return first, open_socket(port=port + 1)
            except OSError:
                pass
        first.close()
    raise SystemExit("no two free ports")


def receive(receiver):
    """The next message and the time in nanoseconds on CLOCK_REALTIME at which the kernel got it."""
    data, control, _, _ = receiver.recvmsg(65536, 256)
    for level, kind, value in control:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("qq", value[:16])
            return data, seconds * 10**9 + nanoseconds
    return data, time.time_ns()


def monotonic_offset():
    """What is to be added to nanoseconds of CLOCK_REALTIME for those of CLOCK_MONOTONIC, now."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) - time.clock_gettime_ns(time.CLOCK_REALTIME)


def parsed(data, arrival):
    first, second, sequence, timestamp, source = struct.unpack_from("!BBHII", data)
    payload = data[12 + 4 * (first & 15):]
    if first & 0x20:
        payload = payload[:-payload[-1]]
    return Packet(arrival, sequence, timestamp, second & 0x80 != 0, source, payload)


class Receiver(threading.Thread):
    """Takes RTP from a port until it is closed; RTCP that shares the port (RFC 5761 section 4) is left out.

    `take` is called with each packet; without it they are kept in `packets`."""

    def __init__(self, take=None, room=4 << 20):
        super().__init__(daemon=True)
        self.packets = []
        self.take = take or self.packets.append
        self.socket, self.reports = open_pair(room)
        self.socket.settimeout(0.2)
        self.port = self.socket.getsockname()[1]
        self.is_open = True
        self.start()

    def run(self):
        while self.is_open:
            try:
                data, arrival = receive(self.socket)
            except TimeoutError:
                continue
            if len(data) > 12 and not 192 <= data[1] <= 223:
                self.take(parsed(data, (arrival + monotonic_offset()) / 1e9))

    def close(self):
        self.is_open = False
        self.join()
        self.socket.close()
        self.reports.close()

    def wait(self, packets, seconds=60):
        """Until so many packets have come; whether they have."""
        limit = time.monotonic() + seconds
        while len(self.packets) < packets and time.monotonic() < limit:
            time.sleep(0.005)
        return len(self.packets) >= packets


def missing(packets):
    """Packets that are not there, by the sequence numbers within each stream."""
    lost, last = 0, {}
    for packet in packets:
        if packet.source in last:
            lost += (packet.sequence - last[packet.source] - 1) & 0xffff
        last[packet.source] = packet.sequence
    return lost


def signed(difference):
    """Of two timestamps of 32 bits, whichever is the later."""
    difference &= 0xffffffff
    return difference - (1 << 32 if difference >= 1 << 31 else 0)


def depacketize(payload, data):
    """Appends what a packet holds as Annex B: single NAL units, STAP-A and FU-A."""
    kind = payload[0] & 31
    if kind == 24:
        position = 1
        while position + 2 < len(payload):
            length = struct.unpack_from("!H", payload, position)[0]
            data += b"\0\0\0\1" + payload[position + 2:position + 2 + length]
            position += 2 + length
    elif kind == 28:
        if payload[1] & 0x80:
            data += b"\0\0\0\1" + bytes([payload[0] & 0xe0 | payload[1] & 31])
        data += payload[2:]
    else:
        data += b"\0\0\0\1" + payload


def depacketize_hevc(payload, data):
    """Appends what a packet of RFC 7798 holds as Annex B: single NAL units, APs and FUs."""
    kind = payload[0] >> 1 & 63
    if kind == 48:
        position = 2
        while position + 2 < len(payload):
            length = struct.unpack_from("!H", payload, position)[0]
            data += b"\0\0\0\1" + payload[position + 2:position + 2 + length]
            position += 2 + length
    elif kind == 49:
        if payload[2] & 0x80:
            data += b"\0\0\0\1" + bytes([payload[0] & 0x81 | (payload[2] & 63) << 1, payload[1]])
        data += payload[3:]
    else:
        data += b"\0\0\0\1" + payload


def parameter_set_in(data):
    """The SPS in Annex B data, or None."""
    return next((unit for unit in bytes(data).split(b"\0\0\0\1") if unit and unit[0] & 31 == 7), None)


def parameter_set(payload):
    """The SPS, alone or in a STAP-A, or None."""
    units = bytearray()
    if payload[0] & 31 in (7, 24):
        depacketize(payload, units)
    return parameter_set_in(units)
