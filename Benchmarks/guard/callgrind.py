"""Counts instructions by valgrind's callgrind, in user space."""
import collections
import glob
import os
import re
import subprocess


HERE = os.path.dirname(os.path.abspath(__file__))


def build_switch(folder):
    """Builds the library that begins the count with a program's first thread (instrument.c), in `folder`; its path."""
    source, library = os.path.join(HERE, "instrument.c"), os.path.join(folder, "instrument.so")
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def count(command, out, preloaded=(), environment=None, switch=None):
    """Runs `command`, with the libraries `preloaded` and `environment` added to ours: for each of its threads, the main one
    first, instructions by object. With a `switch` of `build_switch()` what comes before the second thread is left out.
    callgrind's files are `out` with -01, -02 and so on behind it."""
    libraries = [*preloaded, *([switch] if switch else [])]
    added = {**(environment or {}), **({"LD_PRELOAD": ":".join(libraries)} if libraries else {})}
    result = subprocess.run(["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}",
                             f"--instr-atstart={'no' if switch else 'yes'}", *command],
                            stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, **added})
    collected = re.search(r"Collected : (\d+)", result.stderr)
    if result.returncode != 0 or not collected:
        raise RuntimeError(f"{' '.join(command)} under callgrind: {result.stderr[-600:]}")
    threads = [costs_by_object(path) for path in sorted(glob.glob(glob.escape(out) + "-[0-9][0-9]"))]
    # What is not attributed is not guarded.
    attributed = sum(sum(costs.values()) for costs in threads)
    if attributed != int(collected[1]):
        raise RuntimeError(f"{out}: {attributed} instructions in the files, {collected[1]} counted")
    return threads


def costs_by_object(path):
    """The self cost of each object in a file of callgrind's, by the name of its file.

    https://valgrind.org/docs/manual/cl-format.html: `ob=` says whose the lines of costs are that follow; `cob=` is the callee's,
    and the line behind `calls=` is what the callee cost, which is counted there already. Names are told once, with a number.
    """
    names, costs = {}, collections.Counter()
    current, is_inclusive = None, False
    with open(path, errors="replace") as file:
        for line in file:
            if line[0] in "0123456789+-*":
                if not is_inclusive:
                    costs[current] += int(line.split()[1])
                is_inclusive = False
            elif line.startswith(("ob=", "cob=")):
                number, _, name = line.split("=", 1)[1].strip().partition(" ")
                if name:
                    names[number] = os.path.basename(name)
                if line[0] == "o":
                    current = names[number]
            elif line.startswith("calls="):
                is_inclusive = True
    return costs
