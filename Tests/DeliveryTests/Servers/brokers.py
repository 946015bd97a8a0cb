"""Hostile MQTT brokers.

  brokers.py PORT BEHAVIOUR

It writes "ready", and a line for each connection. They speak MQTT 3.1.1, and refuse MQTT 5 as such brokers do; closing ends the
connection instead.
BEHAVIOUR: silent (accepts, and never answers), mute (takes the connection by CONNACK, and then reads and answers nothing),
deaf (the same, and answers pings but acknowledges nothing), garbage (talks no MQTT), flood (after CONNACK, a PUBLISH of
50 MB, and zeros without end), refuse=CODE (CONNACK with this code), refuse5=CODE (the same by MQTT 5), closing (as deaf),
old5 (refuses MQTT 5 by 132, and acknowledges), silent5 (answers nothing by MQTT 5, writes "five" for each, acknowledges, and ends the
connection once, at the first event), taken5 (by MQTT 5, acknowledges, and says at the first event that another client has the name),
hiccup (by MQTT 5, and acknowledges; ends its first connection instead of an answer; writes "five" or "old" for each),
replaced (by MQTT 5; it ends the connection at the first event, and from then on each that is by MQTT 5; writes as hiccup does),
puback=CODE (by MQTT 5, answers the first event with this code, and acknowledges all else; writes "event" for each), parting (does
not acknowledge the first message, answers the first event together with nonsense, and acknowledges all else in later connections;
writes "event" for each), poison=TEXT (acknowledges, and ends the connection at each message with this text; writes "poison" for
each), huge (acknowledges, and answers a subscription with a PUBLISH of 50 MB and zeros without end; writes "subscribed" for each),
slow (acknowledges, and the first event only once the client says that it goes; writes "event" for each), limited (by MQTT 5,
takes packets of 10,000 bytes at most, acknowledges, and writes "large" for a larger one), late (the same with 500 bytes, but it
acknowledges nothing before the first event, and then that one first).
"""

import socket
import sys
import threading
import time

port, behaviour = int(sys.argv[1]), sys.argv[2]
ended = []
# The version of MQTT of each connection.
versions = {}
# The longest packet that it takes.
longest = 500 if behaviour == "late" else 10_000
# Those that speak MQTT 5.
five = ("limited", "late", "taken5", "hiccup", "replaced")


def speaks_five():
    return behaviour in five or behaviour.startswith("puback=")


def packet(connection):
    """The kind of the next packet, the beginning of its rest, and its length; what is longer than that is read and dropped."""
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
    rest, size = b"", length
    while length > 0:
        part = connection.recv(min(length, 65536))
        if not part:
            raise EOFError
        length -= len(part)
        rest = (rest + part)[:65536]
    return kind[0] & 0xF0, rest, size


def acknowledge(connection):
    """Answers packets; in slow, the first event late, and in late, all before it."""
    count, held = 0, b""
    while True:
        kind, rest, size = packet(connection)
        if kind == 0xC0:
            connection.sendall(bytes([0xD0, 0]))
        elif kind == 0x80:
            is_five = versions[connection] == 5
            if behaviour == "huge":
                print("subscribed", flush=True)
                connection.sendall(bytes([0x90, 3]) + rest[:2] + bytes(1))
                flood(connection)
            connection.sendall(bytes([0x90, 3 + is_five]) + rest[:2] + bytes(1 + is_five))
        elif kind == 0x30:
            length = int.from_bytes(rest[:2], "big")
            is_event = rest[2:2 + length].endswith(b"/event")
            number = rest[2 + length:4 + length]
            count += 1
            if behaviour.startswith("poison=") and behaviour.split("=")[1].encode() in rest:
                print("poison", flush=True)
                raise EOFError
            if is_event and (behaviour == "parting" or behaviour.startswith("puback=")):
                print("event", flush=True)
            if behaviour.startswith("puback=") and is_event and not ended:
                ended.append(connection)
                connection.sendall(bytes([0x40, 3]) + number + bytes([int(behaviour.split("=")[1])]))
                continue
            if behaviour == "parting" and not ended:
                if is_event:
                    ended.append(connection)
                    # A packet of a kind that no broker sends.
                    connection.sendall(bytes([0x40, 2]) + number + bytes([0x10, 0]))
                    time.sleep(1)
                    raise EOFError
                if count == 1:
                    continue
            if is_event and behaviour in ("silent5", "taken5", "replaced") and not ended:
                ended.append(connection)
                if behaviour == "taken5":
                    connection.sendall(bytes([0xE0, 2, 0x8E, 0]))
                    time.sleep(1)
                raise EOFError
            if is_event and behaviour == "slow":
                print("event", flush=True)
                if not ended:
                    ended.append(connection)
                    held = number
                    continue
            if held and rest[4 + length:] == b"offline":
                connection.sendall(bytes([0x40, 2]) + held)
                held = b""
            if size > longest:
                print("large", flush=True)
            if behaviour == "late" and not ended:
                held = bytes([0x40, 2]) + number + held
                if is_event:
                    ended.append(connection)
                    connection.sendall(held)
                    held = b""
                continue
            connection.sendall(bytes([0x40, 2]) + number)


def flood(connection):
    # A remaining length of 50,000,000, and a topic of one letter.
    connection.sendall(bytes([0x30, 0x80, 0xE1, 0xEB, 0x17, 0, 1, 0x61]))
    while True:
        connection.sendall(bytes(1 << 20))


def serve(connection):
    try:
        if behaviour == "silent":
            time.sleep(1000)
        if behaviour == "garbage":
            connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" * 100)
            time.sleep(1000)
        # Behind the name of the protocol, with its length, stands the level.
        is_five = packet(connection)[1][6] == 5
        versions[connection] = 5 if is_five else 4
        if behaviour in ("hiccup", "replaced"):
            print("five" if is_five else "old", flush=True)
        if behaviour == "hiccup" and not ended or behaviour == "replaced" and is_five and ended:
            ended.append(connection)
            connection.close()
            return
        if is_five and behaviour == "silent5":
            print("five", flush=True)
            time.sleep(1000)
        if is_five and behaviour == "old5":
            connection.sendall(bytes([0x20, 3, 0, 0x84, 0]))
            connection.close()
            return
        if is_five and not speaks_five() and behaviour != "closing" and not behaviour.startswith("refuse5="):
            connection.sendall(bytes([0x20, 2, 0, 1]))
        if is_five and not speaks_five() and not behaviour.startswith("refuse5="):
            connection.close()
            return
        print("connection", flush=True)
        if behaviour.startswith("refuse5="):
            connection.sendall(bytes([0x20, 3, 0, int(behaviour.split("=")[1]), 0]))
            time.sleep(1000)
        if behaviour in ("limited", "late"):
            # The property Maximum Packet Size.
            connection.sendall(bytes([0x20, 8, 0, 0, 5, 0x27]) + longest.to_bytes(4, "big"))
            acknowledge(connection)
        if is_five and speaks_five():
            connection.sendall(bytes([0x20, 3, 0, 0, 0]))
            acknowledge(connection)
        if behaviour.startswith("refuse="):
            connection.sendall(bytes([0x20, 2, 0, int(behaviour.split("=")[1])]))
            time.sleep(1000)
        connection.sendall(bytes([0x20, 2, 0, 0]))
        if behaviour == "mute":
            time.sleep(1000)
        if behaviour == "flood":
            flood(connection)
        if behaviour in ("slow", "old5", "silent5", "hiccup", "replaced", "parting", "huge") or behaviour.startswith("poison="):
            acknowledge(connection)
        while True:
            if packet(connection)[0] == 0xC0:
                connection.sendall(bytes([0xD0, 0]))
    except (OSError, EOFError, IndexError):
        connection.close()


listener = socket.create_server(("127.0.0.1", port))
print("ready", flush=True)
while True:
    accepted, _ = listener.accept()
    if behaviour in ("silent", "garbage"):
        print("connection", flush=True)
    threading.Thread(target=serve, args=(accepted,), daemon=True).start()
