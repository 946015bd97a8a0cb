"""What a run's packets tell: the pictures' numbers, and how long each was on its way."""
import json
import os
import struct
import subprocess
import zlib


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
        first, second, sequence, timestamp = struct.unpack_from("!BBHI", packet)
        if expected is not None:
            gaps += (sequence - expected) & 0xffff
        expected = (sequence + 1) & 0xffff
        if not found or found[-1].is_whole or found[-1].timestamp != timestamp:
            found.append(Picture(timestamp, arrival))
        picture = found[-1]
        picture.last, picture.is_whole = arrival, second & 0x80 != 0
        payload = packet[12 + 4 * (first & 15):]
        if first & 0x20:
            payload = payload[:-payload[-1]]
        depacketize(payload, picture.data)
    return found, gaps


def depacketize(payload, data):
    """RFC 6184: single NAL units, STAP-A and FU-A."""
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


def is_start(picture):
    """Whether there are parameter sets in it: a decoder can begin there."""
    return b"\0\0\0\1\x67" in picture.data or b"\0\0\0\1\x47" in picture.data or b"\0\0\0\1\x27" in picture.data


def numbers(found):
    """The number of each picture, as ffmpeg's decoder sees the sixteen blocks along its upper edge."""
    result = subprocess.run(
        ["ffmpeg", "-nostdin", "-v", "error", "-threads", "1", "-f", "h264", "-i", "-", "-vsync", "passthrough", "-vf",
         "crop=iw:ih/18:0:0,format=gray,scale=16:1:flags=area", "-f", "rawvideo", "-"],
        input=b"".join(bytes(picture.data) for picture in found), capture_output=True, check=True)
    rows = [result.stdout[index:index + 16] for index in range(0, len(result.stdout), 16)]
    if len(rows) != len(found):
        raise ValueError(f"{len(found)} pictures came, and {len(rows)} were decoded: {result.stderr.decode()[-400:]}")
    return [sum(1 << bit for bit, luma in enumerate(row) if luma > 128) for row in rows]


class Clip:
    """What the camera shows in one coding: when its numbers begin again, and of JPEGs their checksums."""

    def __init__(self, source, jpegs):
        self.modulus = len(jpegs) if source == "mjpeg" else 1 << 16
        self.by_checksum = {zlib.crc32(jpeg): number for number, jpeg in enumerate(jpegs)}


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
