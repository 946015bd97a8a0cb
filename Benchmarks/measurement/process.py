"""What a process costs."""
import os
import resource
import subprocess
import sys
import time
from typing import NamedTuple


class Cost(NamedTuple):
    """Seconds, and bytes of peak resident memory."""
    wall: float
    cpu: float
    peak: int


def begin(command, log, **more):
    """Starts it, with its words in the open file `log`."""
    return subprocess.Popen(command, stdin=more.pop("stdin", subprocess.DEVNULL), stdout=subprocess.DEVNULL, stderr=log,
                            **more)


def begin_into(command, log, output):
    """Starts it as `begin` does, with its standard output in the descriptor `output`."""
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=log)


def end(process):
    """Waits for it: exit status, CPU seconds and peak bytes of it and the children it has waited for."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def measured(command):
    """Runs it to its end."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = process.stderr.read()
    status, cpu, peak = end(process)
    if status != 0:
        sys.exit(f"{command[0]} failed: {error.decode(errors='replace')[-400:]}")
    return Cost(time.monotonic() - start, cpu, peak)


def resident(pid):
    """Bytes in memory, and threads."""
    with open(f"/proc/{pid}/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["VmRSS"].split()[0]) * 1024, int(fields["Threads"])


def processor_seconds(pid):
    """CPU seconds so far of all threads that are alive, to the nanosecond."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def allow_descriptors(count):
    """For programs with a socket or two for each viewer."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard) if hard > 0 else count, hard))
