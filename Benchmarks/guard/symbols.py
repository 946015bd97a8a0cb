"""Names for places in a program."""
import bisect
import subprocess


class Symbols:
    """The functions of the ELF file at `path`, Swift's as Swift writes them; empty where it was stripped."""

    def __init__(self, path):
        listing = subprocess.run(["nm", "--defined-only", path], capture_output=True, text=True).stdout
        rows = [line.split(" ", 2) for line in listing.splitlines()]
        self.functions = sorted((int(row[0], 16), row[2]) for row in rows if len(row) == 3 and row[1] in "tTwWi")
        self.starts = [start for start, _ in self.functions]

    def __bool__(self):
        return bool(self.functions)

    def names(self, offsets):
        """The function at each of `offsets`."""
        found = {offset: self.functions[bisect.bisect(self.starts, offset) - 1][1] for offset in offsets}
        try:
            plain = subprocess.run(["swift", "demangle", "--simplified", "--compact"], input="\n".join(found.values()),
                                   capture_output=True, text=True, check=True).stdout.splitlines()
        except (OSError, subprocess.CalledProcessError):
            return found
        return dict(zip(found, plain)) if len(plain) == len(found) else found
