"""GStreamer's RTSP server with a live test picture and a tone; for Debian's Python.

  rtsp-server.py PORT [--certificate CERTIFICATE KEY] [--secure] [--hevc]

prints "ready"; serves rtsp://127.0.0.1:PORT/camera, or rtsps where a certificate is given; --secure offers SRTP alone. The
picture is H.264, or HEVC.
"""
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import Gio, GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

Gst.init(None)
encoder = "x264enc tune=zerolatency speed-preset=ultrafast key-int-max=25 ! rtph264pay"
if "--hevc" in sys.argv:
    encoder = "x265enc tune=zerolatency speed-preset=ultrafast key-int-max=25 ! rtph265pay"
factory = GstRtspServer.RTSPMediaFactory()
factory.set_launch(
    "( videotestsrc is-live=true pattern=ball ! video/x-raw,format=I420,width=320,height=192,framerate=25/1 "
    f"! {encoder} name=pay0 pt=96 config-interval=-1 "
    "audiotestsrc is-live=true freq=1000 samplesperbuffer=960 ! audio/x-raw,rate=48000,channels=1 "
    "! opusenc bitrate=64000 ! rtpopuspay name=pay1 pt=97 )")
factory.set_shared(True)
if "--secure" in sys.argv:
    factory.set_profiles(GstRtsp.RTSPProfile.SAVP)
server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service(sys.argv[1])
if "--certificate" in sys.argv:
    place = sys.argv.index("--certificate")
    auth = GstRtspServer.RTSPAuth()
    auth.set_tls_certificate(Gio.TlsCertificate.new_from_files(sys.argv[place + 1], sys.argv[place + 2]))
    token = GstRtspServer.RTSPToken()
    token.set_string(GstRtspServer.RTSP_TOKEN_MEDIA_FACTORY_ROLE, "anybody")
    auth.set_default_token(token)
    permissions = GstRtspServer.RTSPPermissions()
    permissions.add_role("anybody")
    permissions.add_permission_for_role("anybody", GstRtspServer.RTSP_PERM_MEDIA_FACTORY_ACCESS, True)
    permissions.add_permission_for_role("anybody", GstRtspServer.RTSP_PERM_MEDIA_FACTORY_CONSTRUCT, True)
    factory.set_permissions(permissions)
    server.set_auth(auth)
server.get_mount_points().add_factory("/camera", factory)
server.attach(None)
print("ready", flush=True)
GLib.MainLoop().run()
