"""A GStreamer pipeline with a live test picture that is turned while it runs; for Debian's Python.

  turning.py WIDTH HEIGHT FPS KBIT PORT      a line of input is the angle in degrees, the end of it ends the program
"""
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import gi  # noqa: E402

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402

from measurement import peers  # noqa: E402

DIRECTIONS = {0: "identity", 90: "90r", 180: "180", 270: "90l"}


def main(width, height, fps, kbit, port):
    Gst.init(None)
    pipeline = Gst.parse_launch(
        f"videotestsrc is-live=true ! video/x-raw,format=I420,width={width},height={height},framerate={fps}/1 ! "
        f"videoflip name=flip ! {' '.join(peers.gstreamer_encoder(peers.Coding(int(kbit))))} ! "
        + " ".join(peers.GSTREAMER_RTP).replace("rtph264pay", "rtph264pay config-interval=-1").replace("{port}", port))
    flip, loop = pipeline.get_by_name("flip"), GLib.MainLoop()

    def turn():
        for line in sys.stdin:
            Gst.util_set_object_arg(flip, "video-direction", DIRECTIONS[int(line)])
        GLib.idle_add(loop.quit)

    def fail(_, message):
        print(message.parse_error(), file=sys.stderr)
        loop.quit()

    bus = pipeline.get_bus()
    bus.add_signal_watch()
    bus.connect("message::error", fail)
    pipeline.set_state(Gst.State.PLAYING)
    threading.Thread(target=turn, daemon=True).start()
    loop.run()
    pipeline.set_state(Gst.State.NULL)


if __name__ == "__main__":
    main(*sys.argv[1:])
