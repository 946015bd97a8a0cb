"""Hostile MQTT brokers.

  brokers.py PORT BEHAVIOUR

It writes "ready", and a line for each connection.
BEHAVIOUR: silent (accepts, and never answers), mute (takes the connection by CONNACK, and then reads and answers nothing),
deaf (the same, and answers pings but acknowledges nothing), garbage (talks no MQTT), flood (after CONNACK, a PUBLISH of
50 MB, and zeros without end), refuse=CODE (CONNACK with this code).
"""

import socket
import sys
import threading
import time

port, behaviour = int(sys.argv[1]), sys.argv[2]


def packet(connection):
    """The first byte of the next packet; its rest is read and dropped."""
    kind = connection.recv(1)
    if not kind:
        raise EOFError
    length = shift = 0
    while True:
        byte = connection.recv(1)[0]
        length |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    while length > 0:
        part = connection.recv(min(length, 65536))
        if not part:
            raise EOFError
        length -= len(part)
    return kind[0] & 0xF0


def serve(connection):
    try:
        if behaviour == "silent":
            time.sleep(1000)
        if behaviour == "garbage":
            connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" * 100)
            time.sleep(1000)
        packet(connection)
        if behaviour.startswith("refuse="):
            connection.sendall(bytes([0x20, 2, 0, int(behaviour.split("=")[1])]))
            time.sleep(1000)
        connection.sendall(bytes([0x20, 2, 0, 0]))
        if behaviour == "mute":
            time.sleep(1000)
        if behaviour == "flood":
            # A remaining length of 50,000,000, and a topic of one letter.
            connection.sendall(bytes([0x30, 0x80, 0xE1, 0xEB, 0x17, 0, 1, 0x61]))
            while True:
                connection.sendall(bytes(1 << 20))
        while True:
            if packet(connection) == 0xC0:
                connection.sendall(bytes([0xD0, 0]))
    except (OSError, EOFError, IndexError):
        connection.close()


listener = socket.create_server(("127.0.0.1", port))
print("ready", flush=True)
while True:
    accepted, _ = listener.accept()
    print("connection", flush=True)
    threading.Thread(target=serve, args=(accepted,), daemon=True).start()
