"""Viewers that note when their pictures and their sound come, and what the pictures show."""
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

from congested import network
from measurement import clip, rtp

BROWSER = os.path.join(network.BENCHMARKS, "Congestion", "browser.py")
VIDEO_CLOCK = 90_000


class Picture(NamedTuple):
    """`at` is the arrival on CLOCK_MONOTONIC and `shown` the time on the stream's clock, both in seconds; `size` is in any unit,
    and `shows` a checksum of all its pixels, or None."""
    at: float
    shown: float
    size: int
    shows: str | None


class Player:
    """ffmpeg by RTSP. Its pictures are decoded, or passed on as they come; its sound is passed on."""

    def __init__(self, inside, way, url, has_sound=False, is_decoding=True):
        self.pictures, self.sounds, self.told = [], [], {}
        coding = ["-autoscale", "0", "-fps_mode", "passthrough"] if is_decoding else ["-c", "copy"]
        output = ["-f", "framecrc", "-flush_packets", "1"]
        pipes = [os.pipe() for _ in range(2 if has_sound else 1)]
        command = [*inside, "ffmpeg", "-nostdin", "-v", "error", "-fflags", "nobuffer", "-flags", "low_delay", "-rtsp_transport", way,
                   "-copyts", "-i", url, "-map", "0:v", *coding, *output, f"pipe:{pipes[0][1]}"]
        if has_sound:
            # A file of its own: in one with the pictures, each would wait for the other.
            command += ["-map", "0:a", "-c", "copy", *output, f"pipe:{pipes[1][1]}"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        pass_fds=[writing for _, writing in pipes])
        self.threads = []
        for (reading, writing), taken in zip(pipes, (self.pictures, self.sounds)):
            os.close(writing)
            self.threads.append(threading.Thread(target=self.read, args=(reading, taken), daemon=True))
            self.threads[-1].start()

    @staticmethod
    def read(descriptor, taken):
        base = 1 / VIDEO_CLOCK
        with open(descriptor) as lines:
            for line in lines:
                now = time.monotonic()
                if line.startswith("#tb"):
                    above, below = line.split()[-1].split("/")
                    base = int(above) / int(below)
                elif not line.startswith("#"):
                    words = line.split(",")
                    taken.append(Picture(now, int(words[2]) * base, int(words[4]), words[5].strip()))

    def wait(self, seconds):
        """`True` once a picture has come."""
        limit = time.monotonic() + seconds
        while not self.pictures and time.monotonic() < limit:
            time.sleep(0.05)
        return bool(self.pictures)

    def finish(self):
        self.process.terminate()
        self.process.wait()
        for thread in self.threads:
            thread.join()


class Browser:
    """Chromium by WebRTC: Congestion/browser.py."""

    def __init__(self, inside, url):
        self.pictures, self.sounds, self.told = [], [], {}
        self.process = subprocess.Popen([*inside, sys.executable, BROWSER, url, f"{network.USER}:{network.PASSWORD}"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait(self, _):
        return self.process.stdout.readline().strip() == "playing"

    def finish(self):
        output, _ = self.process.communicate("", timeout=120)
        if not output:
            return
        self.told = json.loads(output)
        self.pictures = [Picture(at, shown, size, None) for at, shown, size in self.told.pop("pictures")]
        self.sounds = [Picture(at, shown, 0, None) for at, shown in self.told.pop("sounds")]


class Receiver:
    """One to which the program sends RTP, whole pictures of which are noted by the kernel's time. What it gets is what is sent."""

    def __init__(self):
        self.pictures, self.stream = [], bytearray()
        self.sequence = self.stamp = None
        self.tick, self.data, self.is_broken = 0, bytearray(), False
        self.receiver = rtp.Receiver(self.take, room=16 << 20)
        self.port = self.receiver.port

    def take(self, packet):
        if self.sequence is not None:
            self.is_broken |= (packet.sequence - self.sequence) & 0xffff != 1
        if self.stamp is not None:
            self.tick += rtp.signed(packet.timestamp - self.stamp)
        self.sequence, self.stamp = packet.sequence, packet.timestamp
        rtp.depacketize(packet.payload, self.data)
        if packet.is_last:
            if not self.is_broken:
                self.pictures.append(Picture(packet.arrival, self.tick / VIDEO_CLOCK, len(self.data), None))
                self.stream += self.data
            self.data, self.is_broken = bytearray(), False

    def finish(self):
        self.receiver.close()

    def checksums(self):
        """The checksum of each picture's pixels, in order."""
        with tempfile.NamedTemporaryFile(suffix=".h264") as file:
            file.write(self.stream)
            file.flush()
            output = subprocess.run([*clip.FFMPEG, "-f", "h264", "-i", file.name, "-autoscale", "0", "-fps_mode", "passthrough", "-f",
                                     "framecrc", "-"], capture_output=True, text=True, check=True).stdout
        return [line.split(",")[5].strip() for line in output.splitlines() if not line.startswith("#")]
