"""A viewer that notes when each picture was there, for hours if need be."""
import struct
import threading
from typing import NamedTuple

from measurement import clip, rtp

NTP_SECONDS = 2_208_988_800


class Picture(NamedTuple):
    """Seconds on CLOCK_MONOTONIC of its first and last packet, and of when it was captured, by the sender reports: None
    where none had come. `tick` is its RTP timestamp without wraps."""
    tick: int
    first: float
    last: float
    captured: float | None


class Viewer:
    """The pictures that were whole, packets that are missing between them, and of the last two groups of pictures the
    data, to look at."""

    def __init__(self):
        self.pictures, self.missing, self.packets, self.bytes = [], 0, 0, 0
        self.groups = [[], []]
        self.sequence = self.stamp = self.first = self.report = None
        self.tick, self.is_broken, self.data = 0, False, bytearray()
        self.receiver = rtp.Receiver(self.take, room=64 << 20)
        self.port = self.receiver.port
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        """Sender reports: which RTP timestamp was captured when (RFC 3550 section 6.4.1)."""
        while self.receiver.is_open:
            try:
                data, _ = rtp.receive(self.receiver.reports)
            except OSError:
                return
            if len(data) >= 28 and data[1] == 200:
                seconds, fraction, stamp = struct.unpack_from("!III", data, 8)
                real = seconds - NTP_SECONDS + fraction / 2**32
                self.report = (real + rtp.monotonic_offset() / 1e9, stamp)

    def take(self, packet):
        self.packets += 1
        self.bytes += 12 + len(packet.payload)
        if self.sequence is not None:
            lost = (packet.sequence - self.sequence - 1) & 0xffff
            self.missing += lost
            self.is_broken |= lost > 0
        self.sequence = packet.sequence
        if self.first is None or packet.timestamp != self.stamp:
            if self.stamp is not None:
                self.tick += rtp.signed(packet.timestamp - self.stamp)
            self.stamp, self.first, self.data = packet.timestamp, packet.arrival, bytearray()
        rtp.depacketize(packet.payload, self.data)
        if packet.is_last:
            if not self.is_broken:
                self.finish(packet)
            self.first, self.is_broken = None, False

    def finish(self, packet):
        captured = None
        if self.report:
            time, stamp = self.report
            captured = time + rtp.signed(packet.timestamp - stamp) / 90000
        if rtp.parameter_set_in(self.data[:256]):
            self.groups = [self.groups[1], []]
        self.groups[1].append((len(self.pictures), bytes(self.data)))
        self.pictures.append(Picture(self.tick, self.first, packet.arrival, captured))

    def seen_numbers(self):
        """(index of the picture, number that stands in it) of the last whole group of pictures."""
        group = self.groups[0]
        numbers = clip.read_numbers(b"".join(data for _, data in group)) if group else []
        return [(index, number) for (index, _), number in zip(group, numbers)] if len(numbers) == len(group) else []

