"""Viewers that count the pictures they get."""
import socket
import struct
import subprocess
import threading
import time

from measurement import rtp


class Viewer(threading.Thread):
    """One that runs until its stream ends; `pictures` is how many have come so far."""

    def __init__(self):
        super().__init__(daemon=True)
        self.pictures = 0
        self.last = None

    def note(self, packet):
        """A picture's packets have one timestamp (RFC 3550 section 5.1), in a transport stream too."""
        timestamp = struct.unpack_from("!I", packet, 4)[0]
        if timestamp != self.last:
            self.pictures += 1
            self.last = timestamp

    def close(self):
        pass


class RTPViewer(Viewer):
    """Takes what is sent to its port, encrypted or not: RTP's header never is."""

    def __init__(self):
        super().__init__()
        self.sockets = rtp.open_pair(1 << 20)
        self.port = self.sockets[0].getsockname()[1]

    def run(self):
        try:
            while True:
                self.note(self.sockets[0].recv(2048))
        except OSError:
            return

    def close(self):
        for each in self.sockets:
            each.close()


class RTSPViewer(Viewer):
    """ffmpeg, which asks by RTSP for all tracks over `transport` (tcp or udp) and tells each picture."""

    def __init__(self, port, transport, name):
        super().__init__()
        self.port = port
        # Its listener comes a moment after the program.
        wait_for_listener(port)
        self.process = subprocess.Popen(
            ["ffmpeg", "-nostdin", "-v", "error", "-rtsp_transport", transport, "-i", f"rtsp://127.0.0.1:{port}/{name}",
             "-map", "0:v", "-c", "copy", "-flush_packets", "1", "-f", "framecrc", "pipe:1"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def run(self):
        for line in self.process.stdout:
            if not line.startswith("#"):
                self.pictures += 1

    def close(self):
        self.process.kill()
        self.process.wait()


def free_port():
    """A TCP port that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for_listener(port, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"nobody listens at port {port}")
