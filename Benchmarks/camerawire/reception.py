"""What a run's packets tell: the pictures' numbers, and how long each was on its way."""
import json
import os
import struct
import zlib

from measurement import rtp
from measurement.clip import read_numbers


class Picture:
    """Its packets: those of a timestamp, up to the one with the marker (ffmpeg gives two pictures the same one when
    they come too close upon one another)."""

    def __init__(self, timestamp, first):
        self.timestamp, self.first, self.last, self.data, self.is_whole = timestamp, first, first, bytearray(), False


def packets(path):
    """(arrival in nanoseconds on CLOCK_MONOTONIC, RTP packet) in the order of arrival."""
    with open(path, "rb") as file:
        data = file.read()
    position = 0
    while position < len(data):
        arrival, length = struct.unpack_from("<QH", data, position)
        position += 10
        yield arrival, data[position:position + length]
        position += length


def pictures(path):
    """The pictures that came as Annex B, and how many packets are missing between those that did."""
    found, gaps, expected = [], 0, None
    for arrival, packet in packets(path):
        packet = rtp.parsed(packet, arrival)
        if expected is not None:
            gaps += (packet.sequence - expected) & 0xffff
        expected = (packet.sequence + 1) & 0xffff
        if not found or found[-1].is_whole or found[-1].timestamp != packet.timestamp:
            found.append(Picture(packet.timestamp, arrival))
        picture = found[-1]
        picture.last, picture.is_whole = arrival, packet.is_last
        rtp.depacketize(packet.payload, picture.data)
    return found, gaps


def is_start(picture):
    """Whether there are parameter sets in it: a decoder can begin there."""
    return b"\0\0\0\1\x67" in picture.data or b"\0\0\0\1\x47" in picture.data or b"\0\0\0\1\x27" in picture.data


def numbers(found):
    """The number of each picture, as ffmpeg's decoder sees the sixteen blocks along its upper edge."""
    result = read_numbers(b"".join(bytes(picture.data) for picture in found))
    if len(result) != len(found):
        raise ValueError(f"{len(found)} pictures came, and {len(result)} were decoded")
    return result


class Clip:
    """What the camera shows in one coding: when its numbers begin again, and the checksums of the pictures if it has
    coded them."""

    def __init__(self, coded):
        self.modulus = len(coded) if coded else 1 << 16
        self.by_checksum = {zlib.crc32(picture): number for number, picture in enumerate(coded or [])}


def reads(path):
    """What the bare reader read, as pictures without packets: (what it took for the number, time)."""
    with open(path) as file:
        return [tuple(map(int, line.split())) for line in file]


def arrivals(path, clip):
    """The pictures by number, and the packets that are missing between them."""
    found, gaps, by_number = [], 0, {}
    if os.path.exists(path + ".reads"):
        for key, time in reads(path + ".reads"):
            found.append((clip.by_checksum[key] if clip.modulus < 1 << 16 else key, Picture(0, time)))
    else:
        came, gaps = pictures(path + ".rtp")
        while came and not is_start(came[0]):
            came.pop(0)
        found = zip(numbers(came), came)
    for number, picture in found:
        by_number.setdefault(number, []).append(picture)
    return by_number, gaps


def run(path, clip, hertz):
    """The figures of one run, latencies in milliseconds: from when the camera had handed the picture over to when its
    first and its last packet was received."""
    with open(path + ".json") as file:
        notes = json.load(file)
    by_number, gaps = arrivals(path, clip)
    first, last, missing, twice, bits = [], [], 0, 0, 0
    for number, _, handed_over in notes["frames"]:
        # Numbers come again after a while, so it is what came within a second. In one of a hundred pictures the kernel
        # is done before the camera has got to looking at the clock.
        came = [picture for picture in by_number.get(number % clip.modulus, [])
                if -10**6 <= picture.last - handed_over < 10**9]
        missing += not came
        twice += max(0, len(came) - 1)
        if came:
            first.append((came[0].first - handed_over) / 1e6)
            last.append((came[0].last - handed_over) / 1e6)
            bits += len(came[0].data) * 8
    frames, used, seconds = len(notes["frames"]), notes["frames_of_use"], (notes["end"] - notes["begin"]) / 1e9
    return {
        "first": first, "last": last, "frames": frames, "missing": missing, "twice": twice, "gaps": gaps,
        "mbit": bits / seconds / 1e6, "ticks": notes["ticks"] * 1000 / used, "switches": notes["switches"] / used,
        "threads": {name: value * 1000 / hertz / used for name, value in notes["threads"].items()},
    }
