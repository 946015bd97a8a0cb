"""The page of 10.9.0.1 in Chromium, for the clients in the far one of two networks."""
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "Benchmarks"))
from measurement.browser import Browser  # noqa: E402

URL = "https://10.9.0.1:8443/"


def load(browser, element):
    """Opens the page until its scripts have made an element. The system may tell Chromium of the new network's addresses while they load;
    Chromium then breaks its connections off (ERR_NETWORK_CHANGED)."""
    for _ in range(20):
        try:
            browser.open("about:blank")
            browser.open(URL)
            for _ in range(50):
                if browser.run("return location.href === arguments[0] && !!document.querySelector(arguments[1])", URL, element):
                    return
                time.sleep(0.1)
        except SystemExit as error:
            print(f"far_page: {error}", file=sys.stderr)
            time.sleep(0.5)
    raise SystemExit("far_page: the page does not load: " + browser.run("return document.body.innerText"))


def opened():
    """A browser that has opened the page as anna, once the program serves it."""
    folder = tempfile.mkdtemp(dir=os.environ["HOME"])
    for _ in range(200):
        if subprocess.run(["curl", "-sko", "/dev/null", "--max-time", "1", URL]).returncode == 0:
            break
        time.sleep(0.1)
    browser = Browser(folder)
    load(browser, "input")
    browser.run("localStorage.setItem('nightjar-login', 'Basic ' + btoa('anna:correct horse'))")
    load(browser, "video")
    return browser
