"""Chromium without a window, driven through chromedriver (W3C WebDriver)."""
import base64
import json
import socket
import subprocess
import time
import urllib.error
import urllib.request

OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--mute-audio", "--disable-dev-shm-usage",
           "--ignore-certificate-errors"]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Browser:
    """One window, with a profile in `folder`."""

    def __init__(self, folder, options=(), size=(420, 800)):
        self.base = f"http://127.0.0.1:{free_port()}"
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=" + self.base.rsplit(":", 1)[1]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={"HOME": folder, "PATH": "/usr/bin:/bin"})
        for _ in range(1200):
            try:
                self.request("GET", "/status")
                break
            except OSError:
                time.sleep(0.05)
        arguments = [*OPTIONS, f"--user-data-dir={folder}/chromium", "--window-size={},{}".format(*size), *options]
        wanted = {"browserName": "chrome", "acceptInsecureCerts": True, "goog:loggingPrefs": {"browser": "ALL"},
                  "goog:chromeOptions": {"args": arguments, "binary": "/usr/bin/chromium"}}
        made = self.request("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.version = made["capabilities"]["browserVersion"]
        self.base += "/session/" + made["sessionId"]

    def request(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        sent = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(sent, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise SystemExit(f"chromedriver: {value['error']}: {value['message']}") from None

    def open(self, url):
        self.request("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """The body of a function in the page; what it returns, also by a promise."""
        return self.request("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def command(self, name, **parameters):
        """A command of the DevTools protocol."""
        return self.request("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def find(self, path):
        return next(iter(self.request("POST", "/element", {"using": "xpath", "value": path}).values()))

    def click(self, text):
        """Touches the button with this text, as a finger would."""
        self.request("POST", f"/element/{self.find(f'//button[contains(normalize-space(.), {json.dumps(text)})]')}/click", {})

    def type(self, name, text):
        """Writes into the field with this name."""
        self.request("POST", f"/element/{self.find(f'//input[@name={json.dumps(name)}]')}/value", {"text": text})

    def await_true(self, expression, seconds=30):
        for _ in range(int(seconds * 20)):
            if self.run(f"return !!({expression})"):
                return
            time.sleep(0.05)
        raise SystemExit(f"the page does not come to this within {seconds} s: {expression}\n" + self.run(
            "return document.body.innerText"))

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.request("GET", "/screenshot")))

    def close(self):
        self.request("DELETE", "")
        self.driver.terminate()
        self.driver.wait()
