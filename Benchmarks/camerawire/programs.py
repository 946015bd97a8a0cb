"""The programs that are compared, with equal settings, as {node} and {port} of a run are put into them."""
import os
import re
import subprocess

# What `nightjar stream --preset ultra-low-latency` gives x264 at 30 frames a second.
KEY_FRAME_FRAMES = 60
BUFFER_SECONDS = 0.1
SLICES = 4
MTU = 1200
# The row of who reads the camera and does nothing with the pictures.
READER = "reading alone"
# nightjar with the right to real-time priority that its systemd unit gives it.
SERVICE = "nightjar, as its service"


def commands(nightjar, source, size, kbit, extra, others):
    """By name, for pictures that the camera codes as `source`; `extra` are more rows of nightjar with more options,
    `others` rows of other builds of it."""
    width, height = size.split("x")
    buffer = int(kbit * BUFFER_SECONDS)
    x264 = f"sliced-threads=0:slices={SLICES}:scenecut=0:keyint={KEY_FRAME_FRAMES}:min-keyint={KEY_FRAME_FRAMES}"
    ours = [nightjar, "stream", "--source", "{node}", "--format", source, "--size", size, "--fps", "30", "--encoder",
            "x264", "--preset", "ultra-low-latency", "--threads", "1", "--bitrate", f"{kbit}k", "--to",
            f"rtp://127.0.0.1:{{port}}?mtu={MTU}"]
    # JPEGs are of the full range: nobody has to convert them.
    pixels = {"yuyv": "yuv420p", "mjpeg": "yuvj420p"}[source]
    ffmpeg = ["ffmpeg", "-nostdin", "-v", "error", "-fflags", "nobuffer", "-f", "v4l2", "-input_format",
              {"yuyv": "yuyv422", "mjpeg": "mjpeg"}[source], "-framerate", "30", "-video_size", size, "-i", "{node}",
              "-vsync", "passthrough", "-pix_fmt", pixels, "-c:v", "libx264", "-preset", "ultrafast", "-tune",
              "zerolatency", "-profile:v", "baseline", "-threads", "1", "-x264-params", x264, "-b:v", f"{kbit}k",
              "-maxrate", f"{kbit}k", "-bufsize", f"{buffer}k", "-f", "rtp",
              f"rtp://127.0.0.1:{{port}}?pkt_size={MTU}"]
    decode = {"yuyv": ["video/x-raw,format=YUY2", "videoconvert"], "mjpeg": ["image/jpeg", "jpegdec"]}[source]
    gstreamer = ["gst-launch-1.0", "-q", "v4l2src", "device={node}", "!",
                 f"{decode[0]},width={width},height={height},framerate=30/1", "!", decode[1], "!", "x264enc",
                 "tune=zerolatency", "speed-preset=ultrafast", "threads=1", "sliced-threads=false", f"bitrate={kbit}",
                 f"vbv-buf-capacity={int(BUFFER_SECONDS * 1000)}", f"key-int-max={KEY_FRAME_FRAMES}",
                 f"option-string=scenecut=0:slices={SLICES}", "!",
                 "video/x-h264,profile=constrained-baseline,stream-format=byte-stream", "!",
                 "rtph264pay", f"mtu={MTU}", "!", "udpsink", "host=127.0.0.1", "port={port}",
                 "sync=false", "async=false"]
    reader = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reader.py")
    table = {"nightjar": ours, "ffmpeg": ffmpeg, "GStreamer": gstreamer,
             SERVICE: ["prlimit", "--rtprio=5", *ours],
             READER: ["python3", reader, "{node}", source, size, "{reads}"]}
    table.update({name: ours + options for name, options in extra.items()})
    table.update({name: [program, *ours[1:]] for name, program in others.items()})
    return table


def versions(nightjar):
    """What each program calls itself."""
    def first(*command):
        return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[0]
    gstreamer = first("gst-launch-1.0", "--version").split()[-1]
    return {"nightjar": first(nightjar, "--version"),
            "ffmpeg": re.search(r"version (\S+)", first("ffmpeg", "-version")).group(1),
            "GStreamer": gstreamer,
            "x264": first("x264", "--version").replace("x264 ", "")}
