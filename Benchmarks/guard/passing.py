"""Instructions for a picture that a webcam has coded and nightjar passes on, in the rig.

Pictures come by the camera's clock, so the difference is that of a long and a short run, divided by the pictures that the longer one
has passed on more. What goes by the clock is in it, for the time between two pictures.
"""
import collections
import json
import os
import subprocess
import sys

from camerawire.guest import Camera
from guard import callgrind
from guard.cameras import WEBCAM
from guard.viewers import RTPViewer
from measurement import clip

SIZE, KBIT = "1280x720", 3000
# Seconds of both runs: a start under callgrind takes some.
SHORT, LONG = 20, 60


def for_a_picture(program, folder, switch):
    """By object, as `for_a_frame` of guard-instructions has it."""
    if not os.path.exists(WEBCAM):
        sys.exit(f"guard-instructions: {WEBCAM} is missing; make bench-rig builds it")
    coded = os.path.join(folder, "clip.h264")
    subprocess.run([*clip.FFMPEG, "-f", "lavfi", "-i", clip.scene(SIZE), "-frames:v", "64", "-pix_fmt", "yuv420p", "-c:v", "libx264",
                    "-preset", "veryfast", "-tune", "zerolatency", "-g", "32", "-b:v", f"{KBIT}k", "-bsf:v",
                    "h264_metadata=aud=insert", "-f", "h264", "-y", coded], check=True)
    viewer, report = RTPViewer(), os.path.join(folder, "passing.json")
    viewer.start()
    camera = Camera({"camera": WEBCAM, "camera_arguments": ["--h264", f"{SIZE}:{coded}"]})
    counts, pictures = [], []
    try:
        for seconds in (SHORT, LONG):
            called = [program, "stream", "--source", camera.node(), "--encoder", "camera", "--size", SIZE, "--fps", "30", "--audio",
                      "none", "--control", "none", "--thermal", "off", "--no-load-adaptation", "--bitrate", f"{KBIT}k", "--duration",
                      f"{seconds}s", "--stats-json", report, "--to", f"rtp://127.0.0.1:{viewer.port}"]
            threads = callgrind.count(called, os.path.join(folder, f"passing-{seconds}.callgrind"), switch=switch)
            # Neither the main thread nor nj-alerts, which go by the clock.
            counts.append(sum(threads[2:], collections.Counter()))
            with open(report) as file:
                pictures.append(json.load(file)["encoder"]["frames_passed"])
    finally:
        camera.tool.kill()
        camera.tool.wait()
    if pictures[1] - pictures[0] < 100:
        sys.exit(f"guard-instructions: {pictures} pictures were passed on, too few to count")
    result = collections.Counter()
    for key in counts[1]:
        short = "nightjar" if key == os.path.basename(program) else key.split(".so")[0]
        result[short] += (counts[1][key] - counts[0][key]) / (pictures[1] - pictures[0])
    result["all"] = sum(result.values())
    return result


def tell(count):
    """Prints the row."""
    libraries = ", ".join(f"{name} {cost / 1000:.1f}" for name, cost in sorted(count.items(), key=lambda item: -item[1])
                          if name not in ("nightjar", "all") and cost > 500)
    print("| stream | nightjar itself, instructions a picture | libraries, thousands | all, thousands |")
    print("|---|---|---|---|")
    print(f"| the camera's own H.264, {SIZE}, {KBIT / 1000:g} Mbit/s | {count['nightjar']:.0f} | {libraries} | {count['all'] / 1000:.1f} |")
