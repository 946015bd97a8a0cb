"""A receiver of H.264 by RTP over UDP: GStreamer, which reports by RTCP as RFC 3550 has it.

gst_receiver.py ADDRESS PORT FILE OVER: takes RTP at PORT of ADDRESS and RTCP at the next one, writes the stream to FILE, and ends once
the file OVER is there. GStreamer has two sockets for RTCP, and the sender takes reports from the port alone to which it sends its own:
so this program is between them.
"""
import os
import select
import signal
import socket
import subprocess
import sys

address, port, path, over = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]


def bound(host, number=0):
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
    made.bind((host, number))
    return made


media, control = bound(address, port), bound(address, port + 1)
back = bound("127.0.0.1")
# Two ports in a row that nobody has: in a network of its own, any.
inner = 6004
gstreamer = subprocess.Popen([
    "gst-launch-1.0", "-q", "rtpbin", "name=r", "latency=200",
    "udpsrc", "address=127.0.0.1", f"port={inner}",
    "caps=application/x-rtp,media=(string)video,clock-rate=90000,encoding-name=(string)H264,payload=96", "!",
    "r.recv_rtp_sink_0", "r.", "!", "rtph264depay", "!", "video/x-h264,stream-format=byte-stream,alignment=au", "!",
    "filesink", f"location={path}", "sync=false", "buffer-mode=unbuffered",
    "udpsrc", "address=127.0.0.1", f"port={inner + 1}", "!", "r.recv_rtcp_sink_0",
    "r.send_rtcp_src_0", "!", "udpsink", "host=127.0.0.1", f"port={back.getsockname()[1]}", "sync=false", "async=false"])
sender = None
reports = 0
while not os.path.exists(over) and gstreamer.poll() is None:
    for ready in select.select([media, control, back], [], [], 0.2)[0]:
        datagram, source = ready.recvfrom(65_536)
        if ready is back:
            if sender:
                control.sendto(datagram, sender)
                reports += 1
        else:
            if ready is control:
                sender = source
            back.sendto(datagram, ("127.0.0.1", inner if ready is media else inner + 1))
# By force: the file has all that came.
gstreamer.send_signal(signal.SIGKILL)
gstreamer.wait()
print(reports)
sys.exit(0 if reports > 0 else 1)
