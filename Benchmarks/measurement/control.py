"""The program's control socket."""
import http.client
import json
import socket


class Control(http.client.HTTPConnection):
    """HTTP over the Unix socket at `path`."""

    def __init__(self, path, timeout=30):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def ask(self, method, path, value=None):
        """The answer's JSON; ends the benchmark where the answer is an error."""
        body, headers = (None, {}) if value is None else (json.dumps(value), {"Content-Type": "application/json"})
        self.request(method, path, body, headers)
        response = self.getresponse()
        answer = response.read()
        if response.status >= 300:
            raise SystemExit(f"{method} {path}: {response.status} {answer.decode(errors='replace')}")
        return json.loads(answer) if answer else None
