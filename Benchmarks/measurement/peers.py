"""ffmpeg, GStreamer and the x264 program with equal settings of x264: ultrafast, zerolatency, baseline, and packets of
equal size. Parts of command lines; {port} is where they send to."""
from typing import NamedTuple

MTU = 1200


class Coding(NamedTuple):
    """What nightjar gives x264: with `live-capture` half a second of buffer, with `ultra-low-latency` a tenth and four
    slices; key frames after two seconds. A thread more is a slice more, coded at the same time as the other."""
    kbit: int
    slices: int = 1
    buffer_seconds: float = 0.5
    key_frame_frames: int = 60
    threads: int = 1


def low_latency(kbit, **more):
    return Coding(kbit, slices=4, buffer_seconds=0.1, **more)


def _slices(coding):
    # Of sliced threads each has a slice; asking for more would change nothing.
    return f":slices={coding.slices}" if coding.slices > 1 and coding.threads == 1 else ""


def ffmpeg(coding):
    sliced = int(coding.threads > 1)
    x264 = (f"sliced-threads={sliced}{_slices(coding)}:scenecut=0:keyint={coding.key_frame_frames}"
            f":min-keyint={coding.key_frame_frames}")
    return ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-profile:v", "baseline", "-threads",
            str(coding.threads), "-x264-params", x264, "-b:v", f"{coding.kbit}k", "-maxrate", f"{coding.kbit}k",
            "-bufsize", f"{int(coding.kbit * coding.buffer_seconds)}k", *FFMPEG_RTP]


FFMPEG_RTP = ["-f", "rtp", f"rtp://127.0.0.1:{{port}}?pkt_size={MTU}"]


def gstreamer_encoder(coding):
    sliced = "true" if coding.threads > 1 else "false"
    return ["x264enc", "tune=zerolatency", "speed-preset=ultrafast", f"threads={coding.threads}",
            f"sliced-threads={sliced}", f"bitrate={coding.kbit}",
            f"vbv-buf-capacity={int(coding.buffer_seconds * 1000)}", f"key-int-max={coding.key_frame_frames}",
            f"option-string=scenecut=0{_slices(coding)}", "!",
            "video/x-h264,profile=constrained-baseline,stream-format=byte-stream"]


def gstreamer(coding):
    return [*gstreamer_encoder(coding), "!", *GSTREAMER_RTP]


GSTREAMER_RTP = ["rtph264pay", f"mtu={MTU}", "!", "udpsink", "host=127.0.0.1", "port={port}", "sync=false",
                 "async=false"]


def x264(coding):
    """It sends nothing: the floor."""
    more = ["--slices", str(coding.slices)] if coding.slices > 1 else []
    return ["x264", "--quiet", "--no-progress", "--preset", "ultrafast", "--tune", "zerolatency", "--profile",
            "baseline", "--threads", str(coding.threads), "--no-sliced-threads", *more, "--bitrate", str(coding.kbit),
            "--vbv-maxrate", str(coding.kbit), "--vbv-bufsize", str(int(coding.kbit * coding.buffer_seconds)),
            "--keyint", str(coding.key_frame_frames), "--min-keyint", str(coding.key_frame_frames), "--scenecut", "0",
            "-o", "/dev/null"]
