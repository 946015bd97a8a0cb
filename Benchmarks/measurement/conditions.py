"""With what, and on what machine, something was measured."""
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
NIGHTJAR = os.path.abspath(os.environ.get("NIGHTJAR", os.path.join(ROOT, ".build", "release", "nightjar")))
# Debian's own, which has the bindings of GStreamer.
SYSTEM_PYTHON = "/usr/bin/python3"


def require(benchmark, *tools, target="make bench"):
    """Ends where a program is missing."""
    for tool in tools:
        if not shutil.which(tool):
            sys.exit(f"{benchmark}: {tool} is missing; {target} builds and installs what is needed")


def require_bindings(benchmark, *modules):
    """Ends where Debian's Python cannot use these parts of GStreamer."""
    words = "import gi; " + "; ".join(f"gi.require_version('{module}', '1.0')" for module in modules)
    if subprocess.run([SYSTEM_PYTHON, "-c", words], capture_output=True).returncode != 0:
        sys.exit(f"{benchmark}: GStreamer's bindings for Python are missing; make bench installs what is needed")


def machine():
    """What it is, and how much other work it has: to be asked before measuring."""
    with open("/proc/cpuinfo") as file:
        processor = re.search(r"model name\s*: (.*)", file.read())
    with open("/etc/os-release") as file:
        system = re.search(r'PRETTY_NAME="?([^"\n]*)', file.read())
    return {"processor": processor.group(1) if processor else os.uname().machine, "processors": os.cpu_count(),
            "system": system.group(1) if system else "Linux", "kernel": re.match(r"[\d.]+", os.uname().release).group(),
            "load": round(os.getloadavg()[0], 1), "precedence": os.sched_getscheduler(0) == os.SCHED_FIFO}


def versions(nightjar=NIGHTJAR, programs=("ffmpeg", "GStreamer", "x264")):
    """What each program calls itself."""
    def first(*command):
        return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[0]
    every = {"ffmpeg": lambda: re.search(r"version (\S+)", first("ffmpeg", "-version")).group(1),
             "GStreamer": lambda: first("gst-launch-1.0", "--version").split()[-1],
             "x264": lambda: first("x264", "--version").replace("x264 ", "")}
    return {"nightjar": first(nightjar, "--version")} | {name: every[name]() for name in programs}


def described(results):
    """The command, the machine and the programs, in words."""
    about = results["machine"]
    load = f"had a load of {about['load']} by other work" + (", above which this ran" if about["precedence"] else "")
    return (f"`{results['command']}` on {about['system']}, Linux {about['kernel']}, {about['processors']} processors\n"
            f"({about['processor']}), a machine that {load}.\n" + named(results["versions"]) + ".")


def named(programs):
    return ", ".join(f"{name} {version}" for name, version in programs.items())


def short(command):
    """Without this machine's folders: programs by their names, files of the repository by their paths in it."""
    return [short_word(word) for word in command]


def short_word(word):
    if word == NIGHTJAR or os.path.isabs(word) and os.path.basename(word) == "nightjar":
        return "nightjar"
    return os.path.relpath(word, ROOT) if word.startswith(ROOT + os.sep) else word


def command_lines(commands):
    """What was run, a line each."""
    return "\n".join("    " + " ".join(short(command)) for command in commands)


def filled(command, **values):
    """A command with {clip}, {port} and the like put in."""
    result = []
    for word in command:
        for name, value in values.items():
            word = word.replace("{" + name + "}", str(value))
        result.append(word)
    return result
