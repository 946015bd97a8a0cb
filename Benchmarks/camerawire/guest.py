"""Runs inside the rig: plugs the USB camera in, runs each program on it in turns, and writes down what came when.

  guest.py FOLDER      FOLDER/plan.json says what; FOLDER/SOURCE-PROGRAM-ROUND.rtp and .json are written

Nothing but the program and the camera runs while it measures: what comes waits in the socket, with the kernel's time.
"""
import glob
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from measurement import rtp  # noqa: E402

SERIAL = "BENCH"


def read(path):
    with open(path) as file:
        return file.read()


class Camera:
    """The UVC camera, plugged in as long as its program runs."""

    def __init__(self, plan):
        self.log = "/run/camera.log"
        self.tool = subprocess.Popen(
            [plan["camera"], "/run/camera.sock", "--serial", SERIAL, "--log", self.log, *plan["camera_arguments"]],
            stdout=subprocess.PIPE, text=True)
        if self.tool.stdout.readline() != "ready\n":
            sys.exit("the camera could not be plugged in")
        limit = time.monotonic() + 30
        while not self.node():
            if time.monotonic() > limit:
                sys.exit("the kernel made no node of the camera")
            time.sleep(0.05)

    @staticmethod
    def node():
        for entry in sorted(glob.glob("/sys/class/video4linux/video*")):
            try:
                # The second node is for metadata.
                if read(f"{entry}/device/../serial").strip() == SERIAL and read(f"{entry}/index").strip() == "0":
                    return "/dev/" + os.path.basename(entry)
            except OSError:
                continue
        return None

    def handed_over(self, begin, end):
        """Number, first and last byte of the pictures of that time, in nanoseconds."""
        rows = (tuple(map(int, line.split())) for line in read(self.log).splitlines())
        return [row for row in rows if begin <= row[2] <= end]


class Receiver:
    """A pair of ports that takes everything, and is read afterwards."""

    def __init__(self):
        self.rtp, self.rtcp = rtp.open_pair(256 << 20)
        self.port = self.rtp.getsockname()[1]

    def wait(self, seconds):
        """Until there is something."""
        self.rtp.settimeout(seconds)
        try:
            self.rtp.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return False
        return True

    def drain(self, path):
        """Writes all that came: 8 bytes of CLOCK_MONOTONIC in nanoseconds, 2 of length, the packet."""
        offset = rtp.monotonic_offset()
        self.rtp.setblocking(False)
        with open(path, "wb") as file:
            while True:
                try:
                    data, arrival = rtp.receive(self.rtp)
                except BlockingIOError:
                    break
                file.write(struct.pack("<QH", arrival + offset, len(data)) + data)
        self.rtp.close()
        self.rtcp.close()


def usage(pid):
    """Of all the process's threads: utime + stime in ticks, context switches of both kinds."""
    def ticks(path):
        fields = read(path).rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])
    switches, by_thread = 0, {}
    for task in glob.glob(f"/proc/{pid}/task/*"):
        try:
            name, its_ticks, status = read(f"{task}/comm").strip(), ticks(f"{task}/stat"), read(f"{task}/status")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended: its ticks are in the process's
        by_thread[name] = by_thread.get(name, 0) + its_ticks
        switches += sum(map(int, re.findall(r"_ctxt_switches:\s+(\d+)", status)))
    return {"ticks": ticks(f"/proc/{pid}/stat"), "switches": switches, "threads": by_thread}


def is_reading(path, limit):
    """Whether the bare reader, which sends nothing, gets pictures by then."""
    while time.monotonic() < limit:
        if os.path.exists(path) and os.path.getsize(path):
            return True
        time.sleep(0.05)
    return False


def run(command, camera, seconds, settle, path):
    """One run of a program; what it cost goes to PATH.json, what it sent to PATH.rtp or what it read to PATH.reads."""
    receiver, reads = Receiver(), path + ".reads" if "{reads}" in command else None
    command = [word.replace("{node}", camera.node()).replace("{port}", str(receiver.port))
               .replace("{statistics}", path + ".statistics").replace("{reads}", reads or "") for word in command]
    with open(path + ".log", "w") as log:
        program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if not (is_reading(reads, time.monotonic() + 60) if reads else receiver.wait(60)):
            program.kill()
            sys.exit(f"{command[0]} sent nothing in 60 s: {read(path + '.log')[-800:]}")
        time.sleep(settle)
        # Reading what a program with many threads has used takes time, for which it waits: pictures of that time count
        # for the cost alone.
        begin_of_use, before = time.monotonic_ns(), usage(program.pid)
        time.sleep(0.2)
        begin = time.monotonic_ns()
        time.sleep(seconds)
        end = time.monotonic_ns()
        # What was handed over last is on its way.
        time.sleep(0.2)
        end_of_use, after = time.monotonic_ns(), usage(program.pid)
        program.send_signal(signal.SIGINT)
        try:
            program.wait(20)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
    receiver.drain(path + ".rtp")
    threads = {name: after["threads"][name] - before["threads"].get(name, 0) for name in after["threads"]}
    with open(path + ".json", "w") as file:
        json.dump({"begin": begin, "end": end, "frames": camera.handed_over(begin, end),
                   "frames_of_use": len(camera.handed_over(begin_of_use, end_of_use)),
                   "ticks": after["ticks"] - before["ticks"], "switches": after["switches"] - before["switches"],
                   "threads": threads}, file)


def main(folder):
    with open(os.path.join(folder, "plan.json")) as file:
        plan = json.load(file)
    camera = Camera(plan)
    try:
        for source, table in plan["commands"].items():
            for name, command in table.items():
                print(f"{source}: {name}, unmeasured", file=sys.stderr, flush=True)
                run(command, camera, 2, 2, os.path.join(folder, "unmeasured"))
            names = list(table)
            for round in range(plan["rounds"]):
                for name in names[round % len(names):] + names[:round % len(names)]:
                    print(f"{source}: round {round + 1}, {name}", file=sys.stderr, flush=True)
                    run(table[name], camera, plan["seconds"], plan["settle"],
                        os.path.join(folder, f"{source}-{name}-{round}"))
    finally:
        camera.tool.kill()
    with open(os.path.join(folder, "machine.json"), "w") as file:
        json.dump({"kernel": os.uname().release, "hertz": os.sysconf("SC_CLK_TCK")}, file)


if __name__ == "__main__":
    main(sys.argv[1])
