"""Clips to encode, camera-like: detail that moves, and the noise of a sensor."""
import os
import subprocess

FFMPEG = ["ffmpeg", "-nostdin", "-v", "error"]


def scene(size, rate=30):
    """ffmpeg's description of it."""
    return f"testsrc2=size={size}:rate={rate},noise=alls=6:allf=t"


def numbered(size):
    """A filter for the inputs [0], which is `bits()`, and [1], the scene: the picture's number in sixteen blocks along
    the upper edge, the lowest bit first, white for one."""
    enlarged = f"scale={size.replace('x', ':')}:flags=neighbor,crop=iw:ih/18:0:0"
    return f"[0]{enlarged}[n];[1][n]overlay=0:0:format=yuv420"


def bits(rate=30):
    """The blocks, drawn small, one pixel each."""
    return f"color=black:s=16x18:r={rate},format=gray,geq=lum='if(mod(floor(N/pow(2\\,X))\\,2)\\,235\\,16)'"


def make_y4m(folder, size, frames, rate=30, numbers=False):
    """The path of the clip."""
    path = os.path.join(folder, f"{size}-{frames}.y4m")
    inputs = ["-f", "lavfi", "-i", scene(size, rate)]
    if numbers:
        inputs = ["-f", "lavfi", "-i", bits(rate), *inputs, "-filter_complex", numbered(size) + ",format=yuv420p"]
    subprocess.run([*FFMPEG, *inputs, "-frames:v", str(frames), "-pix_fmt", "yuv420p", "-y", path], check=True)
    return path


def read_numbers(annex_b):
    """The number of each picture of a stream, as ffmpeg's decoder sees the blocks."""
    result = subprocess.run(
        [*FFMPEG, "-threads", "1", "-f", "h264", "-i", "-", "-vsync", "passthrough", "-vf",
         "crop=iw:ih/18:0:0,format=gray,scale=16:1:flags=area", "-f", "rawvideo", "-"],
        input=annex_b, capture_output=True, check=True)
    rows = [result.stdout[index:index + 16] for index in range(0, len(result.stdout), 16)]
    return [sum(1 << bit for bit, luma in enumerate(row) if luma > 128) for row in rows]
