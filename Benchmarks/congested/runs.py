"""One viewer whose network gets weak for a while, others beside it, and what all of them saw."""
import sys
import tempfile
import time
from typing import NamedTuple

from congested import viewers
from congested.network import Network, Program, factor
from measurement import figures

WAYS = {"udp": "RTSP/UDP", "tcp": "RTSP/TCP", "webrtc": "WebRTC"}
# A picture that stands longer is frozen, in seconds.
FROZEN = 0.2
INTERVAL = 1 / 30
# The rows of the link's log in a second.
ROWS = 10


class Run(NamedTuple):
    """The times on CLOCK_MONOTONIC: `begin` when the viewer had begun to watch, `weak` and `back` the ends of the weak time. `rows` is
    the link's log, and `overtaxed` the frames for which the encoder was too slow on this machine: nobody gets them."""
    viewer: viewers.Player | viewers.Browser
    receiver: viewers.Receiver
    player: viewers.Player
    rows: list
    begin: float
    weak: float
    back: float
    overtaxed: int | None


def watch(source, way, delay, usual, low, seconds, has_sound=False):
    """`usual` and `low` are settings of Congestion/link.py, `seconds` the times before, in and after the weak one."""
    with tempfile.TemporaryDirectory(prefix="nightjar-bench.", ignore_cleanup_errors=True) as folder:
        receiver, network = viewers.Receiver(), Network(folder, delay, **usual)
        program = Program(folder, source, receiver.port, has_sound)
        player = viewers.Player([], "tcp", program.rtsp, is_decoding=False)
        viewer = (viewers.Browser(network.inside, program.https) if way == "webrtc"
                  else viewers.Player(network.inside, way, program.rtsp, has_sound))
        try:
            if not viewer.wait(30) or not player.wait(30):
                sys.exit(f"congestion: no picture by {way}: {program.text()}")
            begin = time.monotonic()
            time.sleep(seconds[0])
            weak = time.monotonic()
            network.set(**low)
            time.sleep(seconds[1])
            back = time.monotonic()
            network.set(**usual)
            time.sleep(seconds[2])
        finally:
            viewer.finish()
            player.finish()
            overtaxed = program.close()
            receiver.finish()
            rows = network.finish()
    return Run(viewer, receiver, player, rows, begin, weak, back, overtaxed)


def gaps(events, begin, end):
    """The times between those that come from `begin` to `end`, and these two."""
    times = [begin] + [event.at for event in events if begin <= event.at < end] + [end]
    return [later - former for former, later in zip(times, times[1:])]


def seen(run):
    """What the viewer saw in the weak time."""
    pictures, weak, back = run.viewer.pictures, run.weak, run.back
    waits = gaps(pictures, weak, back)
    least, largest = min(one.at - one.shown for one in pictures), max(one.size for one in pictures)
    there = [one for one in pictures if weak <= one.at < back]
    delays = sorted(one.at - one.shown - least for one in there)
    return {
        "frozen": sum(gap - FROZEN for gap in waits if gap > FROZEN), "longest": max(waits), "pictures": len(there) / (back - weak),
        "small": sum(one.size < largest for one in there) / max(1, len(there)),
        "delay": [figures.percentile(delays, part) for part in (50, 95)] if delays else None,
        "told": run.viewer.told, "overtaxed": run.overtaxed,
    }


def exact(run):
    """The share of the pictures sent in the weak time that the viewer shows bit by bit; None where nobody reads its pixels."""
    if run.viewer.pictures[0].shows is None:
        return None
    got = {one.shows for one in run.viewer.pictures}
    sent = list(zip(reversed(run.receiver.pictures), reversed(run.receiver.checksums())))
    wanted = [checksum for one, checksum in sent if run.weak <= one.at < run.back]
    return sum(checksum in got for checksum in wanted) / max(1, len(wanted))


def beside(run):
    """Of each other viewer, before the weak time and in it: pictures, those that are missing, and those that come more than a
    frame interval later than the fastest one."""
    others = {"RTP": run.receiver.pictures, "RTSP/TCP": run.player.pictures}
    times = {"before": (run.begin, run.weak), "weak": (run.weak, run.back)}
    return {name: {when: counted(pictures, *ends) for when, ends in times.items()} for name, pictures in others.items()}


def counted(pictures, begin, end):
    least = min(one.at - one.shown for one in pictures)
    there = [one for one in pictures if begin <= one.at < end]
    # A picture's place is that in the stream, whenever it came.
    lost = sum(max(0, round((later.shown - former.shown) / INTERVAL) - 1) for former, later in zip(there, there[1:]))
    return {"pictures": len(there), "lost": lost, "late": sum(one.at - one.shown - least > INTERVAL for one in there)}


def mean(rows, column, begin, end):
    values = [row[column] for row in rows if begin <= row[0] < end]
    return sum(values) / max(1, len(values))


LEFT, CAME = 1, 4


def path(run, rate):
    """What the network had to do: the times until less came than it takes, and until it was used again; the queue; its use."""
    rows, half = run.rows, ROWS // 2
    later = [row for row in rows if run.weak <= row[0] < run.back]
    below = next((later[index][0] - 1 / ROWS - run.weak for index in range(len(later) - half)
                  if sum(row[CAME] for row in later[index:index + half]) / half < rate), None)
    settled = [row for row in rows if run.weak + 3 <= row[0] < run.back]
    usual = mean(rows, LEFT, run.weak - 5, run.weak)
    after = [row for row in rows if row[0] >= run.back]
    recovered = next((after[index][0] - run.back for index in range(ROWS, len(after))
                      if sum(row[LEFT] for row in after[index - ROWS:index]) / ROWS >= 0.9 * usual), None)
    return {
        "below": None if below is None else max(0, below), "waiting": figures.percentile(sorted(row[2] for row in settled), 95),
        "used": sum(row[LEFT] for row in settled) / max(1, len(settled)) / rate, "recovered": recovered, "dropped": rows[-1][3],
        "usual": usual,
    }


def series(run, options, usual, low):
    """For the plot, each fifth of a second from the fall on: what came, and the delay of the queue; and the capacity."""
    points = []
    for first, second in zip(run.rows[::2], run.rows[1::2]):
        at = second[0] - run.weak
        if -options.before <= at <= options.weak + options.after:
            points.append([round(at, 1), round((first[CAME] + second[CAME]) / 2e6, 3), round(max(first[2], second[2]), 1)])
    capacity = [[-options.before, usual / 1e6], [0, usual / 1e6], [0, low / 1e6], [options.weak, low / 1e6],
                [options.weak, usual / 1e6], [options.weak + options.after, usual / 1e6]]
    return {"points": points, "capacity": capacity}


def fall(options, source, way, place, usual):
    rate, queue = place.split("/")
    run = watch(source, way, options.delay / 1000, dict(zip(("rate", "queue"), usual)), {"rate": rate, "queue": queue},
                (options.before, options.weak, options.after))
    return {"rate": rate, "queue": queue, "way": way, **seen(run), "exact": exact(run), "beside": beside(run), **path(run, factor(rate)),
            "series": series(run, options, factor(usual[0]), factor(rate))}


def loss(options, source, way, share, rate, queue):
    """The bitrate without losses and with them, after each time's first seconds."""
    usual, settling = {"rate": rate, "queue": queue, "loss": 0}, 4
    run = watch(source, way, options.delay / 1000, usual, {"loss": share}, (options.weak, options.weak, 1))
    before, after = (mean(run.rows, CAME, begin + settling, begin + options.weak) for begin in (run.weak - options.weak, run.weak))
    return {"way": way, "loss": share, "rate": rate, "queue": queue, "before": before, "bitrate": after, "share": after / before,
            **seen(run), "beside": beside(run)}


def sound(options, source, way, place, usual):
    rate, queue = place.split("/")
    run = watch(source, way, options.delay / 1000, dict(zip(("rate", "queue"), usual)), {"rate": rate, "queue": queue},
                (options.before, options.weak, 4), has_sound=True)
    sounds = [one for one in run.viewer.sounds if run.weak <= one.at < run.back]
    steps = sorted(later.shown - former.shown for former, later in zip(sounds, sounds[1:]))
    length = steps[len(steps) // 2] if steps else 0.02
    span = sounds[-1].shown - sounds[0].shown if sounds else 0
    return {"rate": rate, "queue": queue, "way": way, **seen(run), "beside": beside(run), **path(run, factor(rate)),
            "gap": max(gaps(run.viewer.sounds, run.weak, run.back)), "gap before": max(gaps(run.viewer.sounds, run.weak - 5, run.weak)),
            "packets": len(sounds), "missing": max(0, 1 - len(sounds) / (span / length + 1)) if sounds else 1}
