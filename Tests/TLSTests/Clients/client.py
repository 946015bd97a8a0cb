#!/usr/bin/env python3
"""Clients of TLS that misbehave in one way each, by Python's own ssl module: client.py WHAT PORT [NUMBER]."""
import asyncio
import hashlib
import signal
import socket
import ssl
import struct
import sys

CONTEXT = ssl.create_default_context()
CONTEXT.check_hostname = False
CONTEXT.verify_mode = ssl.CERT_NONE


class Peer:
    """A connection whose records are in the caller's hands; `piece` bytes at most go into a segment."""

    def __init__(self, port, piece=None, receive_buffer=None):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = CONTEXT.wrap_bio(self.incoming, self.outgoing)
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.piece = piece
        self.do(self.tls.do_handshake)

    def send(self):
        data = self.outgoing.read()
        step = self.piece or max(1, len(data))
        for start in range(0, len(data), step):
            self.socket.sendall(data[start:start + step])

    def do(self, call, *arguments):
        """Calls until it has what it wants; what it has to send is sent."""
        while True:
            try:
                result = call(*arguments)
                self.send()
                return result
            except ssl.SSLWantReadError:
                self.send()
                data = self.socket.recv(65536)
                if data:
                    self.incoming.write(data)
                else:
                    self.incoming.write_eof()

    def read(self):
        """The next plaintext; nothing at close_notify. A connection that is cut off raises."""
        try:
            return self.do(self.tls.read, 65536)
        except ssl.SSLZeroReturnError:
            return b""

    def close_output(self):
        try:
            self.tls.unwrap()
        except ssl.SSLWantReadError:
            pass
        self.send()

    def rest(self):
        digest, count = hashlib.sha256(), 0
        while data := self.read():
            digest.update(data)
            count += len(data)
        return f"{count} {digest.hexdigest()}"


def bytewise(port, count):
    peer = Peer(port, piece=1)
    for index in range(count):
        peer.do(peer.tls.write, bytes([index % 256]))
    got = b""
    while len(got) < count:
        got += peer.read()
    assert got == bytes(index % 256 for index in range(count)), got
    peer.close_output()
    assert peer.read() == b""
    print("echoed", peer.tls.version())


def truncated(port, _):
    peer = Peer(port)
    peer.do(peer.tls.write, b"half a request")
    peer.read()
    peer.socket.close()


def reset(port, _):
    peer = Peer(port)
    peer.do(peer.tls.write, b"half a request")
    peer.read()
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.socket.close()


def clean(port, _):
    peer = Peer(port)
    peer.do(peer.tls.write, b"a whole request")
    peer.read()
    peer.close_output()
    assert peer.read() == b""
    print("closed by both")


def half_closed(port, _):
    """Says that it is done, and reads on."""
    peer = Peer(port)
    peer.close_output()
    print(peer.rest())


def finished(port, _):
    """Says that it is done by TLS and by TCP, and reads on."""
    peer = Peer(port)
    peer.close_output()
    peer.socket.shutdown(socket.SHUT_WR)
    print(peer.rest())


def reading(port, _):
    peer = Peer(port)
    peer.do(peer.tls.write, b"go")
    print(peer.rest())


def sleeping(port, _):
    """Reads nothing before it gets a signal."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    peer = Peer(port, receive_buffer=4096)
    peer.do(peer.tls.write, b"go")
    print("ready", flush=True)
    signal.sigwait([signal.SIGUSR1])
    print(peer.rest())


def pushing(port, count):
    peer = Peer(port)
    print("ready", flush=True)
    for _ in range(count):
        peer.do(peer.tls.write, bytes(1 << 16))
    peer.close_output()
    print("sent", flush=True)
    peer.read()


def crowd(port, count):
    async def one():
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=CONTEXT, ssl_handshake_timeout=60)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        return writer

    async def all_of_them():
        writers = await asyncio.gather(*(one() for _ in range(count)))
        print(len(writers), "at once")
        for writer in writers:
            writer.transport.abort()

    asyncio.run(all_of_them())


def churn(port, count):
    """One connection after another: closed by both, cut off, and broken off in the handshake."""
    for index in range(count):
        if index % 4 == 3:
            raw = socket.create_connection(("127.0.0.1", port))
            raw.sendall(b"\x16\x03\x01\x02\x00\x01\x00" if index % 8 == 3 else b"OPTIONS * RTSP/1.0\r\n\r\n")
            raw.close()
            continue
        peer = Peer(port)
        peer.do(peer.tls.write, b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n")
        assert peer.read().startswith(b"RTSP/1.0 200")
        if index % 4 == 0:
            peer.close_output()
            assert peer.read() == b""
        peer.socket.close()
    print("churned")


if __name__ == "__main__":
    number = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    globals()[sys.argv[1]](int(sys.argv[2]), number)
