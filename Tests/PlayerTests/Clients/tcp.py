"""ICE by a TCP connection that the peer opens (RFC 6544), each datagram behind its length (RFC 4571): aiortc has UDP alone."""

import asyncio
import secrets
import struct

from aioice import Candidate, ConnectionClosed, stun


class Connection:
    """What aiortc uses of aioice's Connection."""

    def __init__(self, ice_controlling, **_):
        self.ice_controlling = ice_controlling
        self.local_username, self.local_password = secrets.token_hex(4), secrets.token_hex(16)
        self.remote_username = self.remote_password = None
        self.remote_is_lite = False
        # Port 9 stands for any: this side connects (RFC 6544 section 4.5).
        self.local_candidates = [Candidate("1", 1, "tcp", 1 << 24, "127.0.0.1", 9, "host", tcptype="active")]
        self.remote_candidates = []
        self.received = asyncio.Queue()
        self.answered = asyncio.Event()
        self.closed = asyncio.get_event_loop().create_future()
        self.tasks = []
        self.writer = None

    async def gather_candidates(self):
        pass

    async def add_remote_candidate(self, candidate):
        if candidate is not None and candidate.transport == "tcp" and candidate.tcptype == "passive":
            self.remote_candidates.append(candidate)

    async def connect(self):
        target = self.remote_candidates[0]
        reader, self.writer = await asyncio.open_connection(target.host, target.port)
        self.tasks.append(asyncio.ensure_future(self.read(reader)))
        self.check(nominates=True)
        await asyncio.wait_for(self.answered.wait(), 10)
        self.tasks.append(asyncio.ensure_future(self.consent()))

    def check(self, nominates):
        message = stun.Message(message_method=stun.Method.BINDING, message_class=stun.Class.REQUEST)
        message.attributes["USERNAME"] = f"{self.remote_username}:{self.local_username}"
        message.attributes["PRIORITY"] = 1 << 24
        message.attributes["ICE-CONTROLLING"] = secrets.randbits(64)
        if nominates:
            message.attributes["USE-CANDIDATE"] = None
        message.add_message_integrity(self.remote_password.encode())
        self.write(bytes(message))

    async def consent(self):
        while True:
            await asyncio.sleep(2)
            self.check(nominates=False)

    async def read(self, reader):
        try:
            while True:
                (count,) = struct.unpack("!H", await reader.readexactly(2))
                datagram = await reader.readexactly(count)
                if datagram and datagram[0] < 4:
                    stun.parse_message(datagram, integrity_key=self.remote_password.encode())
                    self.answered.set()
                else:
                    self.received.put_nowait(datagram)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.received.put_nowait(None)
            if not self.closed.done():
                self.closed.set_result(None)

    def write(self, datagram):
        if self.writer and not self.writer.is_closing():
            self.writer.write(struct.pack("!H", len(datagram)) + datagram)

    async def send(self, data):
        self.write(data)

    async def recv(self):
        datagram = await self.received.get()
        if datagram is None:
            raise ConnectionError("the connection is closed")
        return datagram

    async def get_event(self):
        await asyncio.shield(self.closed)
        return ConnectionClosed()

    async def close(self):
        for task in self.tasks:
            task.cancel()
        if self.writer:
            self.writer.close()
        self.received.put_nowait(None)
        if not self.closed.done():
            self.closed.set_result(None)
