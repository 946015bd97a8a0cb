"""The programs that encode a clip as fast as it goes, with equal settings; {clip} and {port} are put in."""
from measurement import peers
from measurement.conditions import NIGHTJAR

BITRATES = {"1280x720": 3000, "1920x1080": 6000, "3840x2160": 20000}
ONE_SLICE, FOUR_SLICES = "one slice", "four slices"
CODINGS = [ONE_SLICE, FOUR_SLICES]


def commands(size, coding=ONE_SLICE):
    """By name. With four slices nightjar has its preset ultra-low-latency, in which slices leave one by one."""
    kbit = BITRATES.get(size, 3000)
    ours = [NIGHTJAR, "stream", "--source", "file:{clip}", "--rate", "max", "--loop", "1", "--encoder", "x264",
            "--threads", "1", "--bitrate", f"{kbit}k", "--control", "none"]
    if coding == ONE_SLICE:
        settings = peers.Coding(kbit)
        ours += ["--x264-preset", "ultrafast", "--keyframe-interval", "2s"]
    else:
        settings = peers.low_latency(kbit)
        ours += ["--preset", "ultra-low-latency"]
    return {
        "nightjar": [*ours, "--to", f"rtp://127.0.0.1:{{port}}?mtu={peers.MTU}"],
        "ffmpeg": ["ffmpeg", "-nostdin", "-v", "error", "-i", "{clip}", *peers.ffmpeg(settings)],
        "GStreamer": ["gst-launch-1.0", "-q", "filesrc", "blocksize=1048576", "location={clip}", "!", "y4mdec", "!",
                      *peers.gstreamer(settings)],
        "x264": [*peers.x264(settings), "{clip}"],
    }
