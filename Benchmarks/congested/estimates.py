"""The cost of estimating many viewers' bandwidth: processor time with their reports and without, and allocations."""
import collections
import os
import subprocess
import sys
import tempfile
import time

from congested.network import BENCHMARKS
from counter import CountedProgram, build_counter
from measurement import clip, conditions, process
from measurement.control import Control

BITRATE = 2_000_000
SENDER_CORE, RECEIVER_CORE = "0", "1"
SETTLING, COUNTING = 3, 10
THREADS = ("nj-send", "nj-encode", "nj-capture")


class Receivers:
    """Fanout/receiver.c, which reports while it is told to."""

    def __init__(self, folder, viewers, interval):
        command = ["taskset", "-c", RECEIVER_CORE, os.path.join(folder, "receiver"), str(viewers), f"reports={interval}"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        first = self.process.stdout.readline()
        if not first:
            sys.exit("congestion: the receivers could not be started")
        self.ports = [int(first) + 2 * index for index in range(viewers)]

    def tell(self, letter):
        """`r`: report; `s`: do not. Returns the packets so far."""
        self.process.stdin.write(f"{letter}\n" if letter else "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def finish(self):
        self.process.communicate("", timeout=60)


def command(source, ports, control):
    words = [conditions.NIGHTJAR, "stream", "--source", f"file:{source}", "--encoder", "x264", "--x264-preset", "ultrafast",
             "--no-load-adaptation", "--threads", "1", "--bitrate", str(BITRATE), "--audio", "none", "--name", "camera",
             "--control", control]
    for port in ports:
        words += ["--to", f"rtp://127.0.0.1:{port}"]
    return words


def reporting(control):
    """The viewers from which a report has come."""
    status = Control(control).ask("GET", "/v1/cameras/camera/status")
    return sum("reception" in one for one in status["destinations"])


def measure(options):
    with tempfile.TemporaryDirectory(prefix="nightjar-bench.") as folder:
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-o", os.path.join(folder, "receiver"),
                        os.path.join(BENCHMARKS, "Fanout", "receiver.c")], check=True)
        source = clip.make_y4m(folder, "1280x720", 90)
        return {"viewers": options.viewers, "interval": options.interval, "bitrate": BITRATE, **times(options, folder, source),
                **allocations(options, folder, source)}


def times(options, folder, source):
    """Shares of a core, in turns without reports and with them."""
    shares, packets, reporters = {"s": [], "r": []}, [], 0
    for _ in range(options.rounds):
        for letter, found in shares.items():
            share, rate, reporters = turn(options, folder, source, letter)
            found.append(share)
            packets.append(rate)
            print(f"congestion: {options.viewers} viewers, reports {'on' if letter == 'r' else 'off'}: {share:.2%} of a core",
                  file=sys.stderr, flush=True)
    return {"without": shares["s"], "with": shares["r"], "packets": packets, "reporters": reporters}


def turn(options, folder, source, letter):
    """The share of a core, the packets a second, and the viewers from which reports came. By a program of its own: one to which a
    viewer has reported goes on to look for further reports with each picture."""
    control = os.path.join(folder, "control")
    receivers = Receivers(folder, options.viewers, options.interval)
    program = subprocess.Popen(["taskset", "-c", SENDER_CORE, *command(source, receivers.ports, control)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=lambda: process.allow_descriptors(4 * options.viewers + 100))
    try:
        receivers.tell(letter)
        time.sleep(3 * SETTLING)
        start, cpu, before = time.monotonic(), process.processor_seconds(program.pid), receivers.tell("")
        time.sleep(options.seconds)
        wall = time.monotonic() - start
        share = (process.processor_seconds(program.pid) - cpu) / wall
        rate = (receivers.tell("") - before) / wall
        return share, rate, reporting(control)
    finally:
        program.terminate()
        program.wait()
        receivers.finish()


def allocations(options, folder, source):
    """What the program itself allocates, by thread, while all viewers report; libraries' own is left out."""
    receivers = Receivers(folder, options.viewers, options.interval)
    counted = CountedProgram(command(source, receivers.ports, "none"), build_counter(folder), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, preexec_fn=lambda: process.allow_descriptors(4 * options.viewers + 100))
    try:
        receivers.tell("r")
        time.sleep(4 * SETTLING)
        before = receivers.tell("r")
        counted.begin()
        time.sleep(COUNTING)
        seconds, sites, _ = counted.end()
        packets = receivers.tell("") - before
    finally:
        counted.process.terminate()
        counted.process.wait()
        receivers.finish()
    found = collections.Counter()
    for site in sites:
        if site.owner(conditions.NIGHTJAR) is None:
            found[site.thread.rstrip("0123456789-#")] += site.count
    ours = sum(count for thread, count in found.items() if thread in THREADS)
    return {"counted": {"seconds": seconds, "packets": packets, "allocations": ours,
                        "others": {thread: count for thread, count in found.items() if thread not in THREADS}}}
