"""Runs a command on a terminal of its own, and answers its questions as a person would.

  terminal.py QUESTIONS COMMAND…

QUESTIONS is JSON: [[text to wait for, answer], …]. Prints JSON: the exit status, and all that the terminal showed.
"""
import json
import os
import pty
import select
import signal
import sys
import time

questions = json.loads(sys.argv[1])
reader, writer = os.pipe()
process, terminal = pty.fork()
if process == 0:
    # The session's leader stays: at its end the kernel throws away what has not been read from the terminal.
    command = os.fork()
    if command == 0:
        os.execvp(sys.argv[2], sys.argv[2:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    os.write(writer, str(status).encode())
    for descriptor in 0, 1, 2:
        os.close(descriptor)
    signal.pause()
os.close(writer)
shown, place, end = b"", 0, time.monotonic() + 90
while time.monotonic() < end:
    if questions:
        found = shown.find(questions[0][0].encode(), place)
        if found >= 0:
            place = found + len(questions[0][0].encode())
            os.write(terminal, questions.pop(0)[1].encode() + b"\n")
    # Look for the command's end first: output and end may both come between the two looks.
    has_ended = bool(select.select([reader], [], [], 0)[0])
    if not select.select([terminal], [], [], 1 if has_ended else 0.1)[0]:
        # What the command has left behind may hold the terminal open.
        if has_ended:
            break
        continue
    try:
        part = os.read(terminal, 65536)
    except OSError:
        # The command has closed the terminal.
        break
    if not part:
        break
    shown += part
status = int(os.read(reader, 16) or -9) if select.select([reader], [], [], 0)[0] else -9
os.killpg(process, 9)
os.waitpid(process, 0)
print(json.dumps({"status": status, "shown": shown.decode(errors="replace").replace("\r\n", "\n"), "unasked": questions}))
