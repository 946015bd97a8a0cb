"""Reads a camera through V4L2 and does nothing with the pictures: the least that any program waits for.

  reader.py NODE yuyv|mjpeg|h264 WxH FILE     appends "NUMBER NANOSECONDS" for each picture that VIDIOC_DQBUF gave

The structures are those of linux/videodev2.h on 64 bits. Ends by SIGINT.
"""
import fcntl
import mmap
import os
import struct
import sys
import time
import zlib

S_FMT, REQBUFS, QUERYBUF, QBUF, DQBUF, STREAMON, S_PARM = (
    0xc0d05605, 0xc0145608, 0xc0585609, 0xc058560f, 0xc0585611, 0x40045612, 0xc0cc5616)
CAPTURE, MMAP = 1, 1


def buffer(index=0):
    return bytearray(struct.pack("<II52xI24x", index, CAPTURE, MMAP))


def main(node, source, size, path):
    width, height = map(int, size.split("x"))
    device = os.open(node, os.O_RDWR)
    pixels = {"yuyv": b"YUYV", "mjpeg": b"MJPG", "h264": b"H264"}[source]
    fcntl.ioctl(device, S_FMT, bytearray(struct.pack("<I4xII4sI", CAPTURE, width, height, pixels, 1).ljust(208, b"\0")))
    fcntl.ioctl(device, S_PARM, bytearray(struct.pack("<IIIII", CAPTURE, 0, 0, 1, 30).ljust(204, b"\0")))
    fcntl.ioctl(device, REQBUFS, bytearray(struct.pack("<III8x", 4, CAPTURE, MMAP)))
    memory = []
    for index in range(4):
        described = buffer(index)
        fcntl.ioctl(device, QUERYBUF, described)
        offset, length = struct.unpack_from("<I4xI", described, 64)
        memory.append(mmap.mmap(device, length, mmap.MAP_SHARED, mmap.PROT_READ, offset=offset))
        fcntl.ioctl(device, QBUF, buffer(index))
    fcntl.ioctl(device, STREAMON, struct.pack("<I", CAPTURE))
    file = open(path, "w", buffering=1)
    while True:
        taken = buffer()
        fcntl.ioctl(device, DQBUF, taken)
        now = time.monotonic_ns()
        index, used = struct.unpack_from("<I4xI", taken)
        file.write(f"{number(memory[index], source, width, height, used)} {now}\n")
        fcntl.ioctl(device, QBUF, buffer(index))


def number(picture, source, width, height, used):
    """The sixteen blocks of YUYV; of a coded picture its checksum, which tells them apart."""
    if source != "yuyv":
        return zlib.crc32(picture[:used])
    row = height // 36 * width * 2
    return sum(1 << bit for bit in range(16) if picture[row + (2 * bit + 1) * width // 32 * 2] > 128)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        pass
