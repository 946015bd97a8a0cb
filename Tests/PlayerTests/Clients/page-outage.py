"""Watches the page of 10.9.0.1 in Chromium while its network is dead for some seconds, and tells when what came back.

  page-outage.py SECONDS

The environment has `near`, a process in the program's network namespace, and the commands `down` and `up` that run there.
Prints JSON; times in seconds, by the page's clock.
"""
import json
import os
import subprocess
import sys
import time

from far_page import opened

WATCH = """
  window.outage = { pictures: [], sounds: [], alarm: 0, causes: [] };
  const video = document.querySelector("video");
  const noted = () => { outage.pictures.push(Date.now()); video.requestVideoFrameCallback(noted); };
  video.requestVideoFrameCallback(noted);
  let packets = 0;
  setInterval(async () => {
    for (const report of (await nightjar.connection?.getStats())?.values() ?? []) {
      if (report.type !== "inbound-rtp" || report.kind !== "audio" || report.packetsReceived === packets) continue;
      packets = report.packetsReceived;
      outage.sounds.push(Date.now());
    }
    if (nightjar.alarm.isSounding && !outage.alarm) outage.alarm = Date.now();
    const cause = document.querySelector(".dialog p").textContent;
    if (nightjar.state === "dead" && cause && !outage.causes.includes(cause)) outage.causes.push(cause);
  }, 20);
"""


# What the page may say of a way that is dead; at first it says that the picture stands still.
CAUSES = ["The camera's computer does not answer.", "This device has no network."]


def near(command):
    subprocess.run(["nsenter", "-t", os.environ["near"], "-n", "sh", "-c", command], check=True)
    return time.time() * 1000


def main():
    browser = opened()
    try:
        browser.await_true("window.nightjar && nightjar.state === 'live'", 60)
        browser.click("Wake me if the line fails")
        browser.run(WATCH)
        browser.await_true("outage.pictures.length > 10 && outage.sounds.length > 10", 60)
        down = near(os.environ["down"])
        time.sleep(float(sys.argv[1]))
        browser.await_true(f"outage.alarm > 0 && outage.causes.some((one) => {json.dumps(CAUSES)}.includes(one))", 60)
        up = near(os.environ["up"])
        browser.await_true(f"outage.pictures.at(-1) > {up} && outage.sounds.at(-1) > {up} && nightjar.state === 'live'", 100)
        told = browser.run("return outage")
        # Pictures may come again before `up`, which is read once the command has ended.
        before = max(at for at in told["pictures"] if at < told["alarm"])
        # One that rings before the line is down is false.
        assert told["alarm"] > down, told
        print(json.dumps({
            "picture": min(at for at in told["pictures"] if at > up) / 1000 - up / 1000,
            "sound": min(at for at in told["sounds"] if at > up) / 1000 - up / 1000,
            "alarm": (told["alarm"] - before) / 1000, "causes": told["causes"]}))
    finally:
        browser.close()


main()
