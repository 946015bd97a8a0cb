"""The streams of cameras whose allocations are counted: the kernel's own camera, and a USB webcam, as the rig has them."""
import contextlib
import glob
import os
import subprocess
import sys

from camerawire.guest import Camera
from guard.streams import SIZE, Stream
from measurement import clip, loopback
from measurement.conditions import ROOT

WEBCAM = os.path.abspath(os.environ.get("UVC_CAMERA", os.path.join(ROOT, ".build", "release", "UVCCameraTool")))
WEBCAM_SIZE = "640x480"


def node(name):
    """The device of the camera that its driver calls so."""
    for entry in glob.glob("/sys/class/video4linux/video*"):
        with open(f"{entry}/name") as file:
            if file.read().strip() == name:
                return "/dev/" + os.path.basename(entry)
    sys.exit(f"guard-allocations: there is no camera {name}; --cameras is for the rig: "
             "rig/run Benchmarks/guard-allocations --cameras")


@contextlib.contextmanager
def streams(folder):
    """All of them, as long as the webcam is plugged in."""
    jpegs, coded = os.path.join(folder, "clip.mjpeg"), os.path.join(folder, "clip.h264")
    scene = [*clip.FFMPEG, "-f", "lavfi", "-i", clip.scene(WEBCAM_SIZE), "-frames:v", "30"]
    subprocess.run([*scene, "-pix_fmt", "yuvj420p", "-c:v", "mjpeg", "-f", "mjpeg", "-y", jpegs], check=True)
    subprocess.run([*scene, "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-b:v",
                    "1500k", "-g", "30", "-bsf:v", "h264_metadata=aud=insert", "-f", "h264", "-y", coded], check=True)
    vivid, planar = node("vivid-000-vid-cap"), node("vivid-001-vid-cap")
    # A card, whose samples go through alsa-lib and the resampler, as those of the test tone do not.
    beeper = loopback.Beeper(0, 100)
    webcam = Camera({"camera": WEBCAM, "camera_arguments": ["--mjpeg", jpegs, "--h264", f"{WEBCAM_SIZE}:{coded}"]})
    try:
        yield [Stream(f"{name}, {format.upper()}", ["--source", source, "--format", format, "--size", size, "--fps", "30"])
               for name, source, format, size in [
                   ("camera", vivid, "nv12", SIZE), ("camera", vivid, "yuyv", SIZE),
                   ("camera of several planes", planar, "nv12", SIZE),
                   ("USB camera", webcam.node(), "mjpeg", WEBCAM_SIZE)]] + [
                       # A key frame that is due each two seconds is requested from the camera, on nj-controls.
                       Stream("USB camera, its own H.264", ["--source", webcam.node(), "--encoder", "camera", "--size",
                                                            WEBCAM_SIZE, "--fps", "30"]),
                       Stream("camera with a microphone", ["--source", vivid, "--format", "nv12", "--size", SIZE, "--fps", "30",
                                                           "--audio", beeper.microphone], to=(), rtsp=("udp",))]
    finally:
        beeper.close()
        webcam.tool.kill()
        webcam.tool.wait()
