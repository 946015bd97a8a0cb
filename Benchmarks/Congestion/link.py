#!/usr/bin/env python3
"""A link between two network namespaces, with a rate, a queue, a delay and losses, for kernels without netem.

  sudo unshare -n Benchmarks/Congestion/link.py [--log FILE] [--rate 3M] [--queue 250k] [--delay 0.025] [--loss 0.02]

The near side is the namespace in which the program runs, 10.99.0.1; the far one, 10.99.0.2, is another. The first line of
the output is `far PID`: `nsenter -n -t PID COMMAND` runs a command there. Rate, queue and losses are those from near to far;
the delay is that of each direction. Lines of the input change them: `rate 1M`, `queue 64k`, `loss 0`, `delay 0.05`; the end of
the input ends the program. The log has a line each 100 ms: the time (CLOCK_MONOTONIC), bits a second that left the queue, the
delay of the queue in ms, packets dropped since the start, and bits a second that came from the near side, dropped ones included.
"""
import argparse
import collections
import ctypes
import fcntl
import heapq
import os
import random
import select
import signal
import struct
import subprocess
import sys
import time

NEAR, FAR = "10.99.0.1", "10.99.0.2"
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
PACKET_BYTES = 65_536
LOG_INTERVAL = 0.1


def number(text):
    """A number with k or M behind it."""
    factor = {"k": 1e3, "M": 1e6}.get(text[-1:], 1)
    return float(text[:-1] if factor > 1 else text) * factor


class Link:
    """Packets from the near side to the far one wait in a queue that empties at the rate; those back only take the delay."""

    def __init__(self, options):
        self.rate, self.queue_bytes = number(options.rate), number(options.queue)
        self.delay, self.loss = options.delay, options.loss
        self.random = random.Random(1)
        self.queue, self.queued = collections.deque(), 0
        # The time at which the first packet of the queue will have left it.
        self.head_due = None
        self.flying, self.order = [], 0
        self.came, self.left, self.dropped = 0, 0, 0

    def change(self, word, value):
        if word == "rate":
            self.rate = number(value)
        elif word == "queue":
            self.queue_bytes = number(value)
        elif word == "loss":
            self.loss = float(value)
        elif word == "delay":
            self.delay = float(value)
        else:
            sys.exit(f"link: no such setting: {word}")

    def send(self, packet, now):
        """Takes a packet from the near side."""
        self.came += len(packet)
        if self.random.random() < self.loss or self.queued + len(packet) > self.queue_bytes:
            self.dropped += 1
            return
        if not self.queue:
            self.head_due = now + len(packet) * 8 / self.rate
        self.queue.append(packet)
        self.queued += len(packet)

    def fly(self, packet, due, side):
        self.order += 1
        heapq.heappush(self.flying, (due, self.order, side, packet))

    def advance(self, now):
        """Moves packets out of the queue whose time has come, and returns those that arrive."""
        while self.queue and self.head_due <= now:
            packet = self.queue.popleft()
            self.queued -= len(packet)
            self.left += len(packet)
            self.fly(packet, self.head_due + self.delay, "far")
            if self.queue:
                self.head_due += len(self.queue[0]) * 8 / self.rate
        arrived = []
        while self.flying and self.flying[0][0] <= now:
            arrived.append(heapq.heappop(self.flying)[2:])
        return arrived

    def deadline(self):
        times = ([self.head_due] if self.queue else []) + ([self.flying[0][0]] if self.flying else [])
        return min(times, default=None)


def tunnel(name, own, other, inside=None):
    """Opens a TUN device, within the namespace of process `inside`."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    if inside is not None:
        enter(os.open(f"/proc/{inside}/ns/net", os.O_RDONLY))
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    for words in ("link set lo up", f"address add {own} peer {other} dev {name}", f"link set {name} up mtu 1500 txqueuelen 5000"):
        subprocess.run(["ip", *words.split()], check=True)
    if inside is not None:
        # Browsers take the address of the default route.
        subprocess.run(["ip", "route", "add", "default", "dev", name], check=True)
    enter(home)
    return device


def enter(namespace):
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(namespace, 0x40000000) != 0:
        sys.exit(f"link: setns: {os.strerror(ctypes.get_errno())}; run it as root")
    os.close(namespace)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", type=argparse.FileType("w"))
    parser.add_argument("--rate", default="100M")
    parser.add_argument("--queue", default="1M")
    parser.add_argument("--delay", type=float, default=0)
    parser.add_argument("--loss", type=float, default=0)
    options = parser.parse_args()
    link = Link(options)
    holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
    try:
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{holder.pid}/ns/net") == own:
            time.sleep(0.01)
        near, far = tunnel("near", NEAR, FAR), tunnel("far", FAR, NEAR, inside=holder.pid)
        print(f"far {holder.pid}", flush=True)
        run(link, near, far, options.log)
    finally:
        holder.send_signal(signal.SIGTERM)
        holder.wait()


def run(link, near, far, log):
    poller = select.epoll()
    for descriptor in (near, far, sys.stdin.fileno()):
        poller.register(descriptor, select.EPOLLIN)
    commands = b""
    next_log, came, left = time.monotonic() + LOG_INTERVAL, 0, 0
    while True:
        now = time.monotonic()
        deadline = min([due for due in (link.deadline(), next_log) if due is not None])
        for descriptor, _ in poller.poll(max(0, deadline - now)):
            now = time.monotonic()
            if descriptor == sys.stdin.fileno():
                bytes = os.read(descriptor, 4096)
                if not bytes:
                    return
                *lines, commands = (commands + bytes).split(b"\n")
                for line in lines:
                    link.change(*line.decode().split())
                continue
            while packet := read(descriptor):
                if descriptor == near:
                    link.send(packet, now)
                else:
                    link.fly(packet, now + link.delay, "near")
        now = time.monotonic()
        for side, packet in link.advance(now):
            try:
                os.write(far if side == "far" else near, packet)
            except BlockingIOError:
                link.dropped += 1
        if now >= next_log:
            if log:
                bits, offered = ((count - before) * 8 / LOG_INTERVAL for count, before in ((link.left, left), (link.came, came)))
                print(f"{now:.3f} {bits:.0f} {link.queued * 8000 / link.rate:.1f} {link.dropped} {offered:.0f}", file=log, flush=True)
            next_log, came, left = next_log + LOG_INTERVAL, link.came, link.left


def read(descriptor):
    try:
        return os.read(descriptor, PACKET_BYTES)
    except BlockingIOError:
        return None


if __name__ == "__main__":
    main()
