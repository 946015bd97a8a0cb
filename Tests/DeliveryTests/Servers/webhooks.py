"""A receiver of webhooks: Python's http.server, by TLS where a certificate is given.

  webhooks.py PORT FOLDER BEHAVIOUR [CERTIFICATE KEY]

Each request becomes a file of FOLDER, as JSON. A server that hangs writes a line for each connection instead.
BEHAVIOUR: ok, or the codes to answer with in turn (the last one stays), or flood, redirect, silent, garbage, drip.
"""

import http.server
import json
import os
import socket
import ssl
import sys
import threading
import time

port, folder, behaviour = int(sys.argv[1]), sys.argv[2], sys.argv[3]
lock = threading.Lock()
count = 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.save(b"")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        number = self.save(body)
        if behaviour == "flood":
            self.flood()
            return
        if behaviour == "redirect":
            self.send_response(302)
            self.send_header("Location", "file:///etc/passwd" if number % 2 else f"http://127.0.0.1:{port}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        codes = [200] if behaviour == "ok" else [int(code) for code in behaviour.split(",")]
        self.send_response(codes[min(number, len(codes)) - 1])
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    def save(self, body):
        global count
        with lock:
            count += 1
            number = count
        name = f"{folder}/{number}.json"
        with open(name + ".new", "w") as file:
            json.dump({"method": self.command, "path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()},
                       "body": body.decode()}, file)
        os.rename(name + ".new", name)
        return number

    def flood(self):
        """A gigabyte."""
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 30))
        self.end_headers()
        sent = 0
        try:
            while sent < 1 << 30:
                sent += self.connection.send(bytes(1 << 16))
        except OSError:
            pass
        self.close_connection = True
        with open(f"{folder}/sent.new", "w") as file:
            file.write(str(sent))
        os.rename(f"{folder}/sent.new", f"{folder}/sent")

    def log_message(self, *_):
        pass


def hang():
    """Accepts, and then is silent, talks no HTTP, or talks for ever without an end of a line."""
    listener = socket.create_server(("127.0.0.1", port))
    print("ready", flush=True)
    kept = []
    while True:
        connection, _ = listener.accept()
        kept.append(connection)
        print("connection", flush=True)
        if behaviour == "garbage":
            connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
        if behaviour == "drip":
            threading.Thread(target=drip, args=(connection,), daemon=True).start()


def drip(connection):
    try:
        while True:
            connection.sendall(b"H" * 4096)
            time.sleep(0.001)
    except OSError:
        pass


if behaviour in ("silent", "garbage", "drip"):
    hang()
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
if len(sys.argv) > 4:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[4], sys.argv[5])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print("ready", flush=True)
server.serve_forever()
