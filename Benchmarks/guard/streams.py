"""The streams whose allocations are counted: each is `nightjar stream` with its viewers."""
import os
import pty
import subprocess
import tempfile
import threading
import time

from counter import CountedProgram
from guard.viewers import RTPViewer, RTSPViewer, free_port
from measurement import clip

SIZE = "640x360"
TEST = ["--source", "test", "--size", SIZE]


class Stream:
    """What to stream, and to whom.

    `to` are destinations, "{port}" being the viewer's; `rtsp` the transports by which ffmpeg asks for it. `environment` and
    `preload` are the program's, `on_terminal` whether a person seems to look."""

    def __init__(self, name, arguments, to=("rtp://127.0.0.1:{port}",), rtsp=(), environment=None, preload=(),
                 on_terminal=False):
        self.name, self.arguments, self.to, self.rtsp = name, arguments, to, rtsp
        self.environment, self.preload, self.on_terminal = environment, preload, on_terminal

    # Whatever is done by the clock has been done once or twice.
    SETTLING = 6

    def count(self, program, library, warm, pictures, limit=120):
        """Lets `warm` pictures and some seconds go by, and counts what is allocated until each viewer has got `pictures` more: seconds, the
        pictures of the viewer that got most, sites, pieces given back by thread."""
        viewers = [RTPViewer() for _ in self.to]
        command = [program, "stream", *self.arguments, "--control", "none", "--name", "camera"]
        if "--audio" not in self.arguments:
            # Some machines have a microphone.
            command += ["--audio", "none"]
        if "--sysfs" not in self.arguments:
            # A busy machine would make another encoder meanwhile.
            command.append("--no-load-adaptation")
        if not {"--x264-preset", "--preset", "vaapi"} & set(self.arguments):
            # A preset that is chosen by measurement changes encoders meanwhile.
            command += ["--x264-preset", "ultrafast"]
        for destination, viewer in zip(self.to, viewers):
            command += ["--to", destination.format(port=viewer.port)]
        port = free_port() if self.rtsp else None
        if port:
            command += ["--rtsp", f"127.0.0.1:{port}"]
        terminal, errors = pty.openpty() if self.on_terminal else (None, tempfile.TemporaryFile())
        if terminal is not None:
            threading.Thread(target=look, args=[terminal], daemon=True).start()
        counted = CountedProgram(command, library, self.preload, self.environment, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            viewers += [RTSPViewer(port, transport, "camera") for transport in self.rtsp]
            for viewer in viewers:
                viewer.start()
            begin = time.monotonic()
            end = begin + limit
            self.wait(counted, viewers, [warm] * len(viewers), end)
            time.sleep(max(0, begin + self.SETTLING - time.monotonic()))
            before = [viewer.pictures for viewer in viewers]
            counted.begin()
            self.wait(counted, viewers, [count + pictures for count in before], end)
            seconds, sites, freed = counted.end()
            return seconds, max(viewer.pictures - count for viewer, count in zip(viewers, before)), sites, freed
        except (OSError, OverflowError) as error:
            raise RuntimeError(f"{self.name}: {error}{self.said(errors)}") from error
        finally:
            counted.process.terminate()
            for viewer in viewers:
                viewer.close()
            counted.process.wait(30)
            if terminal is not None:
                os.close(errors)

    @staticmethod
    def wait(counted, viewers, counts, end):
        while any(viewer.pictures < count for viewer, count in zip(viewers, counts)):
            if counted.process.poll() is not None:
                raise OSError(f"it ended with status {counted.process.returncode}")
            if time.monotonic() > end:
                raise OSError(f"of {counts} pictures {[viewer.pictures for viewer in viewers]} came")
            time.sleep(0.02)

    @staticmethod
    def said(errors):
        if isinstance(errors, int):
            return ""
        errors.seek(0)
        return "; it said: " + errors.read().decode(errors="replace")[-600:]


def look(terminal):
    """Reads what a terminal shows, until nobody writes there any more."""
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:
        os.close(terminal)


def write_thermal_zone(root):
    """A temperature sensor as a machine has it, which is looked at every other second."""
    zone = os.path.join(root, "class", "thermal", "thermal_zone0")
    os.makedirs(zone)
    for name, text in {"type": "x86_pkg_temp", "mode": "enabled", "temp": "45000", "trip_point_0_type": "passive",
                       "trip_point_0_temp": "80000", "trip_point_1_type": "critical", "trip_point_1_temp": "100000"}.items():
        with open(os.path.join(zone, name), "w") as file:
            file.write(text + "\n")


def all_streams(folder, strict_va):
    """All of them; those on VA-API where the tests' driver has been built in `strict_va`."""
    file = "file:" + clip.make_y4m(folder, SIZE, 60)
    sysfs = os.path.join(folder, "sys")
    write_thermal_zone(sysfs)
    rtp = "rtp://127.0.0.1:{port}"
    streams = [
        Stream("one viewer", [*TEST, "--sysfs", sysfs]),
        Stream("on a terminal", [*TEST, "--sysfs", sysfs], on_terminal=True),
        Stream("ten viewers", TEST, to=(rtp,) * 10),
        Stream("y4m clip", ["--source", file]),
        Stream("y4m clip, full speed", ["--source", file, "--rate", "max"]),
        Stream("rotated", [*TEST, "--orientation", "90"]),
        Stream("rotated y4m clip", ["--source", file, "--orientation", "270", "--mirror"]),
        Stream("MPEG-TS", TEST, to=(rtp + "?payload=mp2t",)),
        Stream("SRTP", TEST, to=("s" + rtp,)),
        Stream("SRTP, AES-GCM", TEST, to=("s" + rtp + "?suite=AEAD_AES_128_GCM",)),
        Stream("RTSP over UDP", TEST, to=(), rtsp=("udp",)),
        Stream("RTSP over TCP", TEST, to=(), rtsp=("tcp",)),
        Stream("sound by MPEG-TS", [*TEST, "--audio", "test"], to=(rtp + "?payload=mp2t",)),
        Stream("sound by RTSP over UDP", [*TEST, "--audio", "test"], to=(), rtsp=("udp",)),
        Stream("ultra-low latency", [*TEST, "--preset", "ultra-low-latency"]),
        Stream("ultra-low latency, RTSP over TCP", [*TEST, "--preset", "ultra-low-latency"], to=(), rtsp=("tcp",)),
        Stream("HEVC", [*TEST, "--codec", "hevc", "--encoder", "x265"]),
        Stream("two threads of x264", [*TEST, "--threads", "2"]),
        # More than the budget, and so at the lowest preset before the count begins.
        Stream("a preset by measurement", [*TEST, "--x264-preset", "auto", "--cpu-budget", "1%"]),
        Stream("traced", [*TEST, "--trace", os.path.join(folder, "trace.json")]),
        # A picture each two seconds, on threads that frames do not wait for.
        Stream("pictures of alerts", [*TEST, "--movement", "medium"]),
    ]
    if os.path.exists(os.path.join(strict_va, "render-node.so")):
        node = os.path.join(folder, "renderD128")
        open(node, "w").close()
        # On a busy machine, another quality level would be chosen, and told, meanwhile.
        streams.append(Stream(
            "VA-API, the tests' driver",
            [*TEST, "--encoder", "vaapi", "--vaapi-device", node, "--hang-limit", "60", "--vaapi-quality", "4"], environment={
                "LIBVA_DRIVER_NAME": "strict", "LIBVA_DRIVERS_PATH": strict_va, "LIBVA_MESSAGING_LEVEL": "0",
                "NIGHTJAR_RENDER_NODE": node},
            preload=(os.path.join(strict_va, "render-node.so"),)))
    return streams
