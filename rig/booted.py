"""What the tests of a booted systemd have in common: running programs, looking at units, and telling what came out."""
import subprocess
import sys
import time

DRIVER = "/sys/bus/platform/drivers/vivid/"
failures = 0


def run(*command, check=True, **options):
    """What it prints; where it fails the test is over, unless `check` is false."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if check and result.returncode != 0:
        sys.exit(f"{sys.argv[0]}: {' '.join(command)}: {result.stdout}")
    return result.stdout


def expect(condition, text, detail=""):
    global failures
    if condition:
        print(f"ok       {text}", flush=True)
    else:
        failures += 1
        print(f"FAILED   {text} {detail}", flush=True)


def has_failed():
    return failures > 0


def eventually(condition, seconds):
    """The time until `condition`; None where it does not come true."""
    start = time.monotonic()
    while (asked := time.monotonic()) < start + seconds:
        if condition():
            return time.monotonic() - start
        # A question that starts a program leaves the guest's one processor to what is asked about.
        time.sleep(max(0.1, min(3 * (time.monotonic() - asked), 0.5)))
    return None


def show(name, unit="nightjar"):
    """A property of a unit."""
    return run("systemctl", "show", "-P", name, unit).strip()


def is_active(unit="nightjar"):
    return show("ActiveState", unit) == "active"


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def plug(is_in):
    """Binds the camera's driver to its device, or unbinds it."""
    write(DRIVER + ("bind" if is_in else "unbind"), "vivid.0")
