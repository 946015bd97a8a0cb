"""A network that gets weak, and the program that streams into it."""
import os
import re
import socket
import subprocess
import sys
import time

from measurement import conditions

BENCHMARKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
LINK = os.path.join(BENCHMARKS, "Congestion", "link.py")
NEAR, RTSP_PORT, HTTPS_PORT = "10.99.0.1", 8554, 8443
USER, PASSWORD = "anna", "correct horse"
# With the headers of RTP, UDP and IP, with sound, and in a second that takes more than others, all of it fits into 3 Mbit/s.
BITRATE = 2_500_000


def factor(text):
    """The value of a number with k or M behind it."""
    return float(text[:-1]) * {"k": 1e3, "M": 1e6}[text[-1]]


class Network:
    """Congestion/link.py, and its log."""

    def __init__(self, folder, delay, **settings):
        self.log = os.path.join(folder, "link.log")
        words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        self.process = subprocess.Popen([sys.executable, LINK, "--log", self.log, "--delay", str(delay), *words],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        told = self.process.stdout.readline().split()
        if len(told) != 2:
            sys.exit("congestion: no network between two namespaces; run it as root")
        self.inside = ["nsenter", "-n", "-t", told[1]]

    def set(self, **settings):
        for name, value in settings.items():
            self.process.stdin.write(f"{name} {value}\n")
        self.process.stdin.flush()

    def finish(self):
        """The log's rows: time, bits a second that left, ms of queue, packets dropped so far, bits a second that came."""
        self.process.stdin.close()
        self.process.wait()
        with open(self.log) as file:
            return [tuple(map(float, line.split())) for line in file]


class Program:
    """nightjar, which serves players and browsers in both namespaces, and sends to one more receiver without being asked."""

    def __init__(self, folder, source, destination, has_sound):
        self.log = os.path.join(folder, "log")
        users = os.path.join(folder, "users")
        subprocess.run([conditions.NIGHTJAR, "user", "add", USER, "--users", users], input=PASSWORD + "\n", text=True, check=True,
                       stdout=subprocess.DEVNULL)
        # A preset that stays: its change makes one picture late for all.
        command = [conditions.NIGHTJAR, "stream", "--source", f"file:{source}", "--bitrate", str(BITRATE), "--encoder", "x264",
                   "--x264-preset", "superfast", "--no-load-adaptation", "--audio", "test" if has_sound else "none", "--name",
                   "camera", "--users", users, "--rtsp", f"{NEAR}:{RTSP_PORT}", "--https", f"{NEAR}:{HTTPS_PORT}", "--to",
                   f"rtp://127.0.0.1:{destination}", "--control", "none"]
        environment = dict(os.environ, STATE_DIRECTORY=os.path.join(folder, "state"), NIGHTJAR_CONFIG="none")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        for port in (RTSP_PORT, HTTPS_PORT):
            self.wait(port)
        self.rtsp = f"rtsp://{USER}:{PASSWORD.replace(' ', '%20')}@{NEAR}:{RTSP_PORT}/camera"
        self.https = f"https://{NEAR}:{HTTPS_PORT}"

    def wait(self, port):
        for _ in range(300):
            try:
                socket.create_connection((NEAR, port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
            if self.process.poll() is not None:
                break
        sys.exit(f"congestion: nightjar does not serve: {self.text()}")

    def text(self):
        with open(self.log) as file:
            return file.read()[-600:]

    def close(self):
        """Ends it; the frames that it says to have dropped because it came too late to them."""
        self.process.terminate()
        self.process.wait()
        with open(self.log) as file:
            found = re.findall(r"frames captured, .* (\d+) dropped", file.read())
        return int(found[-1]) if found else None
