"""A push service with one browser behind it: Python's http.server by TLS, and Python's cryptography (RFC 8030, 8188, 8291, 8292).

  push.py HOST PORT FOLDER ANSWERS CERTIFICATE KEY

ANSWERS are the codes to answer with in turn (the last one stays), as in 201 or 429:2,201; behind a colon stands Retry-After.
Says the browser's subscription as JSON, and then "ready". Each request becomes a file of FOLDER, as JSON: its headers, the
message that the browser decrypts, the claims of the token, and in "faults" all that is not as the standards want it.

  push.py decrypt < JSON      {"private", "auth", "body"} in Base64 for URLs; says the message
  push.py verify < JSON       {"token", "key"}; says the claims, or "wrong"
"""

import base64
import http.server
import json
import os
import re
import ssl
import sys
import threading
import time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def data(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def point(key):
    return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def derived(salt, secret, info, count):
    return HKDF(algorithm=hashes.SHA256(), length=count, salt=salt, info=info).derive(secret)


def decrypt(private, auth, body):
    """The message of a body that is one record, and the number of bytes that pad it."""
    salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
    sender, record = body[21:21 + length], body[21 + length:]
    if len(record) > size:
        raise ValueError("more than one record")
    shared = private.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
    keying = derived(auth, shared, b"WebPush: info\0" + point(private.public_key()) + sender, 32)
    key = derived(salt, keying, b"Content-Encoding: aes128gcm\0", 16)
    nonce = derived(salt, keying, b"Content-Encoding: nonce\0", 12)
    plain = AESGCM(key).decrypt(nonce, record, None)
    message = plain.rstrip(b"\0")
    if message[-1:] != b"\2":
        raise ValueError("no delimiter of the last record")
    return message[:-1], len(plain) - len(message)


def verify(token, key):
    """The claims of a token that `key` has signed; None for another token."""
    signed, _, signature = token.rpartition(".")
    numbers = data(signature)
    if len(numbers) != 64:
        return None
    coded = utils.encode_dss_signature(int.from_bytes(numbers[:32], "big"), int.from_bytes(numbers[32:], "big"))
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), data(key))
    try:
        public.verify(coded, signed.encode(), ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return None
    header, claims = (json.loads(data(part)) for part in signed.split("."))
    return claims if header.get("alg") == "ES256" else None


if sys.argv[1] in ("decrypt", "verify"):
    asked = json.load(sys.stdin)
    if sys.argv[1] == "verify":
        found = verify(asked["token"], asked["key"])
        print("wrong" if found is None else json.dumps(found))
    else:
        number = int.from_bytes(data(asked["private"]), "big")
        message, _ = decrypt(ec.derive_private_key(number, ec.SECP256R1()), data(asked["auth"]), data(asked["body"]))
        print(message.decode())
    sys.exit(0)

host, port, folder, answers = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4].split(",")
private, auth = ec.generate_private_key(ec.SECP256R1()), os.urandom(16)
origin = f"https://{host}:{port}"
lock = threading.Lock()
count = 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        global count
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with lock:
            count += 1
            number = count
        found = {"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "length": len(body),
                 "at": time.time(), "faults": []}
        faults = found["faults"]
        try:
            message, found["padding"] = decrypt(private, auth, body)
            found["message"] = json.loads(message)
        except Exception as error:
            faults.append(f"the message: {error!r}")
        login = re.fullmatch(r"vapid t=([\w.-]+), k=([\w-]+)", self.headers["Authorization"] or "")
        found["key"] = login and login[2]
        found["claims"] = claims = login and verify(login[1], login[2])
        if not claims:
            faults.append("the token is not signed by its key")
        elif claims["aud"] != origin or not time.time() < claims["exp"] <= time.time() + 86400:
            faults.append(f"the token is for {claims}")
        if self.headers["Content-Encoding"] != "aes128gcm":
            faults.append("another Content-Encoding")
        if not re.fullmatch(r"\d+", self.headers["TTL"] or ""):
            faults.append("no TTL")
        if self.headers["Urgency"] not in ("very-low", "low", "normal", "high"):
            faults.append("no such Urgency")
        if not re.fullmatch(r"[\w-]{1,32}", self.headers["Topic"] or ""):
            faults.append("no such Topic")
        with open(f"{folder}/{number}.new", "w") as file:
            json.dump(found, file)
        os.rename(f"{folder}/{number}.new", f"{folder}/{number}.json")
        code, _, delay = answers[min(number, len(answers)) - 1].partition(":")
        self.send_response(int(code))
        if delay:
            self.send_header("Retry-After", delay)
        if code == "302":
            self.send_header("Location", f"{origin}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1" if host == "localhost" else host, port), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[5], sys.argv[6])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(json.dumps({"endpoint": f"{origin}/push/0123456789abcdef",
                  "keys": {"p256dh": text(point(private.public_key())), "auth": text(auth)}}), flush=True)
print("ready", flush=True)
server.serve_forever()
