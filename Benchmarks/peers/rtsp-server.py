"""GStreamer's RTSP server with a live test picture, coded once for all viewers; for Debian's Python.

  rtsp-server.py PORT WIDTH HEIGHT FPS KBIT KEY_FRAME_FRAMES      prints "ready"; serves rtsp://127.0.0.1:PORT/camera
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import gi  # noqa: E402

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

from measurement import peers  # noqa: E402


def main(port, width, height, fps, kbit, key_frame_frames):
    Gst.init(None)
    coding = peers.Coding(int(kbit), key_frame_frames=int(key_frame_frames))
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(
        f"( videotestsrc is-live=true pattern=smpte ! video/x-raw,format=NV12,width={width},height={height},"
        f"framerate={fps}/1 ! {' '.join(peers.gstreamer_encoder(coding))} ! "
        f"rtph264pay name=pay0 pt=96 mtu={peers.MTU} config-interval=-1 )")
    factory.set_shared(True)
    factory.set_latency(0)
    # Newer ones can begin with a key frame for whoever comes.
    if factory.find_property("ensure-keyunit-on-start"):
        factory.set_property("ensure-keyunit-on-start", True)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(port)
    server.get_mount_points().add_factory("/camera", factory)
    server.attach(None)
    print("ready", flush=True)
    GLib.MainLoop().run()


if __name__ == "__main__":
    main(*sys.argv[1:])
