"""A camera that is a pipe: raw pictures at a steady rate, the same for every program that reads standard input."""
import fcntl
import mmap
import os
import threading
import time

PIPE_BYTES = 1 << 20


class PipedCamera(threading.Thread):
    """Offers a clip's pictures (YUV4MPEG2), again and again, each at its time; one that the reader has not taken in
    full when the next two are due costs those that are due: there is no room for them, as in a camera without buffers.

    The timeline begins when the first picture has been taken. `offered` has the time in seconds on CLOCK_MONOTONIC of
    each picture that was given, from which its way through the pipe counts; `skipped` those that were not."""

    def __init__(self, path, fps, seconds):
        super().__init__(daemon=True)
        with open(path, "rb") as file:
            self.clip = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        self.header = bytes(self.clip[:256]).index(b"\n") + 1
        next_frame = bytes(self.clip[self.header:self.header + 256]).index(b"\n") + 1
        fields = dict((word[0:1], word[1:]) for word in bytes(self.clip[:self.header]).split()[1:])
        self.picture = next_frame + int(fields[b"W"]) * int(fields[b"H"]) * 3 // 2
        self.count = (len(self.clip) - self.header) // self.picture
        self.fps, self.seconds = fps, seconds
        self.reading, self.writing = os.pipe()
        with open("/proc/sys/fs/pipe-max-size") as file:
            fcntl.fcntl(self.writing, fcntl.F_SETPIPE_SZ, min(PIPE_BYTES, int(file.read())))
        self.offered, self.numbers, self.skipped = [], [], []
        self.has_begun = threading.Event()
        self.is_gone = False

    def run(self):
        go_before_others()
        try:
            self.write(self.clip[:self.header])
            self.give(0)
            begin, tick = time.monotonic(), 0
            self.has_begun.set()
            while True:
                late = int((time.monotonic() - begin) * self.fps)
                if late > tick + 1:
                    self.skipped += [begin + each / self.fps for each in range(tick + 1, late)]
                    tick = late - 1
                tick += 1
                due = begin + tick / self.fps
                if due - begin > self.seconds:
                    return
                time.sleep(max(0, due - time.monotonic()))
                self.give(tick)
        except BrokenPipeError:
            self.is_gone = True
            self.has_begun.set()
        finally:
            os.close(self.writing)

    def give(self, tick):
        number = tick % self.count
        self.offered.append(time.monotonic())
        self.numbers.append(number)
        self.write(self.clip[self.header + number * self.picture:self.header + (number + 1) * self.picture])

    def write(self, data):
        done = 0
        while done < len(data):
            done += os.write(self.writing, data[done:])


def go_before_others():
    """Of real-time threads the measuring one goes first, so that its own times are right."""
    if os.sched_getscheduler(0) == os.SCHED_FIFO:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(os.sched_getparam(0).sched_priority + 1))
