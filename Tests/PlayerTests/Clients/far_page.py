"""The page of 10.9.0.1 in Chromium, for the clients in the far one of two networks."""
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "Benchmarks"))
from measurement.browser import Browser  # noqa: E402

URL = "https://10.9.0.1:8443/"


def opened():
    """A browser that has opened the page as anna, once the program serves it."""
    folder = tempfile.mkdtemp(dir=os.environ["HOME"])
    for _ in range(200):
        if subprocess.run(["curl", "-sko", "/dev/null", "--max-time", "1", URL]).returncode == 0:
            break
        time.sleep(0.1)
    browser = Browser(folder)
    browser.open(URL)
    browser.run("localStorage.setItem('nightjar-login', 'Basic ' + btoa('anna:correct horse'))")
    browser.open("about:blank")
    browser.open(URL)
    return browser
