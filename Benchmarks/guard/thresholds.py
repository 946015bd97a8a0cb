"""What thresholds.json allows."""
import json
import os

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "thresholds.json")


class Thresholds:
    """The committed ones."""

    def __init__(self, path=PATH):
        self.path = path
        with open(path) as file:
            self.table = json.load(file)

    def write(self):
        with open(self.path, "w") as file:
            json.dump(self.table, file, indent=2)
            file.write("\n")


class AllocationThresholds(Thresholds):
    """A stream's own go before those of all; what is not there is 0."""

    def look(self, kind, stream, name):
        table = self.table["allocations"][kind]
        return table.get(stream, {}).get(name, table["all"].get(name, 0))

    def for_picture(self, stream, name):
        """How often a thread, or a library for itself, may allocate for a picture."""
        return self.look("a_picture", stream, name)

    def for_second(self, stream, thread):
        """How often another thread may in a second."""
        return self.look("a_second", stream, thread)


class InstructionThresholds(Thresholds):
    """Instructions for a frame, by stream and object, as they were measured with the versions that stand beside them."""

    # What nobody has measured there may be, for a frame: a library that is called now and then.
    UNKNOWN = 2000
    # Libraries choose their code by these.
    LIBRARIES = ("processor", "valgrind", "x264", "x265", "C library")

    def __init__(self, path=PATH):
        super().__init__(path)
        self.instructions = self.table["instructions"]

    def is_comparable(self, here, name):
        """Whether what `name` takes here can be compared: on another kind of machine nothing can, and libraries with other
        versions not."""
        then = self.instructions["measured_with"]
        keys = ("machine",) if name == "nightjar" else ("machine", *self.LIBRARIES)
        return all(then.get(key) == here[key] for key in keys)

    def difference(self, here):
        """What is not as it was when they were measured."""
        then = self.instructions["measured_with"]
        lines = [f"{key} was {then.get(key)} and is {here[key]}" for key in here if then.get(key) != here[key]]
        return f"; mind that {', '.join(lines)}" if lines else ""

    def allowed(self, stream, name):
        """How much an object may take for a frame of a stream."""
        measured = self.instructions["a_frame"].get(stream, {}).get(name)
        return self.UNKNOWN if measured is None else measured * (1 + self.of("room", stream))

    def of(self, table, stream):
        """What a table has for a stream, or else for all."""
        return self.instructions[table].get(stream, self.instructions[table]["all"])

    def complaints(self, stream, count, ratio, here):
        """What is too much of `count`, instructions by object."""
        for name, cost in count.items():
            allowed = self.allowed(stream, name)
            if name != "all" and cost > allowed and self.is_comparable(here, name):
                yield f"{name} takes {cost:.0f} instructions a frame, and {allowed:.0f} are allowed"
        most = self.of("most_of_x264", stream)
        if ratio > most:
            yield f"all takes {ratio:.4f} times what the x264 program does, and {most} times is allowed"

    def renew(self, here, counts):
        """Writes what was measured here."""
        self.instructions["measured_with"] = here
        for stream, count in counts.items():
            self.instructions["a_frame"][stream] = {
                name: round(cost) for name, cost in sorted(count.items()) if cost >= self.UNKNOWN / 2 and name != "all"}
        self.write()
