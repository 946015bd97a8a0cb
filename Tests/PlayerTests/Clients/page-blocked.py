"""Watches the page of 10.9.0.1 in Chromium from a network that lets no UDP through, and tells what came, as JSON."""
import json
import socket
import subprocess

from far_page import opened

FIGURES = """
  return (async () => {
    const reports = [...(await nightjar.connection.getStats()).values()];
    const transport = reports.find((one) => one.type === "transport");
    const pair = reports.find((one) => one.id === transport.selectedCandidatePairId);
    const places = reports.filter((one) => one.type === "remote-candidate");
    return {
      taken: places.find((one) => one.id === pair.remoteCandidateId).protocol,
      offered: [...new Set(places.map((one) => one.protocol))].sort(),
      pictures: document.querySelector("video").getVideoPlaybackQuality().totalVideoFrames,
    };
  })();
"""


def is_blocked():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.sendto(b"anybody?", ("10.9.0.1", 8189))
        except OSError:
            return True
    return False


def main():
    subprocess.run(["ip", "rule", "add", "pref", "1", "ipproto", "udp", "blackhole"], check=True)
    browser = opened()
    try:
        pictures = "document.querySelector('video')?.getVideoPlaybackQuality().totalVideoFrames"
        browser.await_true(f"{pictures} > 20 && nightjar.state === 'live'", 100)
        print(json.dumps(browser.run(FIGURES) | {"blocked": is_blocked()}))
    finally:
        browser.close()


main()
