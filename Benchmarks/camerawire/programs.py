"""The programs that are compared, with equal settings, as {node} and {port} of a run are put into them."""
import os

from measurement import peers

# The row of who reads the camera and does nothing with the pictures.
READER = "reading alone"
# nightjar with the right to real-time priority that its systemd unit gives it.
SERVICE = "nightjar, as its service"
# What the peers cannot: a picture's first slices leave while the others are coded, as the preset has it. With that right
# too: on one processor the sender has to interrupt the encoder.
SLICES = "nightjar, slice by slice"


def commands(nightjar, source, size, kbit, extra, others):
    """By name, for pictures that the camera codes as `source`; `extra` are more rows of nightjar with more options,
    `others` rows of other builds of it."""
    width, height = size.split("x")
    reader = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reader.py")
    reading = {READER: ["python3", reader, "{node}", source, size, "{reads}"]}
    if source == "h264":
        return {**passing(nightjar, size, kbit, extra, others), **reading}
    coding = peers.low_latency(kbit)
    ours = [nightjar, "stream", "--source", "{node}", "--format", source, "--size", size, "--fps", "30", "--audio",
            "none", "--encoder", "x264", "--preset", "ultra-low-latency", "--threads", "1", "--bitrate", f"{kbit}k", "--to",
            f"rtp://127.0.0.1:{{port}}?mtu={peers.MTU}"]
    # JPEGs are of the full range: nobody has to convert them.
    pixels = {"yuyv": "yuv420p", "mjpeg": "yuvj420p"}[source]
    ffmpeg = ["ffmpeg", "-nostdin", "-v", "error", "-fflags", "nobuffer", "-f", "v4l2", "-input_format",
              {"yuyv": "yuyv422", "mjpeg": "mjpeg"}[source], "-framerate", "30", "-video_size", size, "-i", "{node}",
              "-vsync", "passthrough", "-pix_fmt", pixels, *peers.ffmpeg(coding)]
    decode = {"yuyv": ["video/x-raw,format=YUY2", "videoconvert"], "mjpeg": ["image/jpeg", "jpegdec"]}[source]
    gstreamer = ["gst-launch-1.0", "-q", "v4l2src", "device={node}", "!",
                 f"{decode[0]},width={width},height={height},framerate=30/1", "!", decode[1], "!",
                 *peers.gstreamer(coding)]
    whole = [*ours, "--without", "slices"]
    table = {"nightjar": whole, SLICES: ["prlimit", "--rtprio=5", *ours], "ffmpeg": ffmpeg, "GStreamer": gstreamer,
             SERVICE: ["prlimit", "--rtprio=5", *whole], **reading}
    table.update({name: whole + options for name, options in extra.items()})
    table.update({name: [program, *whole[1:]] for name, program in others.items()})
    return table


def passing(nightjar, size, kbit, extra, others):
    """By name, for the H.264 of the camera, which nobody encodes."""
    width, height = size.split("x")
    ours = [nightjar, "stream", "--source", "{node}", "--encoder", "camera", "--size", size, "--fps", "30", "--audio",
            "none", "--bitrate", f"{kbit}k", "--to", f"rtp://127.0.0.1:{{port}}?mtu={peers.MTU}"]
    ffmpeg = ["ffmpeg", "-nostdin", "-v", "error", "-fflags", "nobuffer", "-f", "v4l2", "-input_format", "h264",
              "-framerate", "30", "-video_size", size, "-i", "{node}", "-c:v", "copy", *peers.FFMPEG_RTP]
    gstreamer = ["gst-launch-1.0", "-q", "v4l2src", "device={node}", "!",
                 f"video/x-h264,width={width},height={height},framerate=30/1", "!", "h264parse", "!",
                 *peers.GSTREAMER_RTP]
    table = {"nightjar": ours, "ffmpeg": ffmpeg, "GStreamer": gstreamer, SERVICE: ["prlimit", "--rtprio=5", *ours]}
    table.update({name: ours + options for name, options in extra.items()})
    table.update({name: [program, *ours[1:]] for name, program in others.items()})
    return table
