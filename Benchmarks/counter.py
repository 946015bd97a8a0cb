"""Counts a program's allocations, by a library that is preloaded into it (guard/allocations.c)."""
import os
import socket
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# What allocates in others' name, not for itself.
RUNTIME = ("libc.so", "libstdc++.so", "libgcc_s.so", "libm.so", "ld-linux", "libpthread.so", "libdl.so")


def build_counter(folder):
    """Builds the library in `folder`; its path."""
    source, library = os.path.join(HERE, "guard", "allocations.c"), os.path.join(folder, "allocations.so")
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-fno-builtin", "-shared", "-fPIC", "-o", library, source],
                   check=True)
    return library


class Site:
    """Calls that led to allocations, of one thread: how many, of how many bytes, and the callers, innermost first, each an
    object's path, an offset in it and, where the object tells it, a function's name."""

    def __init__(self, line):
        _, self.thread, self.call, count, size, callers = line.split("\t")
        self.count, self.bytes = int(count), int(size)
        self.callers = []
        for caller in callers.strip("|").split("|"):
            place, _, symbol = caller.partition("=")
            path, _, offset = place.rpartition("+")
            self.callers.append((path, int(offset, 16), symbol))

    def owner(self, program):
        """None where `program` allocates, itself or by the C library; otherwise the name of the library that it called, and
        that does."""
        library = None
        for path, _, _ in self.callers:
            name = os.path.basename(path)
            if os.path.realpath(path) == os.path.realpath(program):
                return library
            if not name.startswith(RUNTIME):
                library = name
        return library


class CountedProgram:
    """A program that is running, and whose allocations are counted from `begin()` to `end()`."""

    def __init__(self, command, library, preload=(), environment=None, **options):
        self.asking, asked = socket.socketpair()
        environment = {**os.environ, **(environment or {}), "NIGHTJAR_COUNT_FD": str(asked.fileno()),
                       "LD_PRELOAD": ":".join([library, *preload])}
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment, pass_fds=[asked.fileno()],
                                        **options)
        asked.close()
        self.asking.settimeout(30)
        self.answers = self.asking.makefile("r")

    def ask(self, question):
        self.asking.sendall(question)
        lines = []
        while (line := self.answers.readline().rstrip("\n")) != ".":
            if not line:
                raise ConnectionError(f"{self.process.args[0]} has ended")
            lines.append(line)
        return lines

    def begin(self):
        """Counts from now on."""
        self.ask(b"b")
        self.began = time.monotonic()

    def end(self):
        """Since `begin()`: seconds, sites, and pieces given back by thread."""
        seconds = time.monotonic() - self.began
        sites, freed = [], {}
        for line in self.ask(b"e"):
            kind, *fields = line.split("\t")
            if kind == "site":
                sites.append(Site(line))
            elif kind == "freed":
                freed[fields[0]] = int(fields[1])
            elif fields != ["0"]:
                raise OverflowError(f"{fields[0]} allocations were too many places to note")
        return seconds, sites, freed
