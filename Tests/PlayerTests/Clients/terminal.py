"""Runs a command on a terminal of its own, and answers its questions as a person would.

  terminal.py QUESTIONS COMMAND…

QUESTIONS is JSON: [[text to wait for, answer], …]. Prints JSON: the exit status, and all that the terminal showed.
"""
import json
import os
import pty
import select
import sys
import time

questions = json.loads(sys.argv[1])
process, terminal = pty.fork()
if process == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
shown, place, end = b"", 0, time.monotonic() + 90
while time.monotonic() < end:
    if questions:
        found = shown.find(questions[0][0].encode(), place)
        if found >= 0:
            place = found + len(questions[0][0].encode())
            os.write(terminal, questions.pop(0)[1].encode() + b"\n")
    if not select.select([terminal], [], [], 0.1)[0]:
        continue
    try:
        part = os.read(terminal, 65536)
    except OSError:
        # The command has closed the terminal.
        break
    if not part:
        break
    shown += part
else:
    os.kill(process, 9)
status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
print(json.dumps({"status": status, "shown": shown.decode(errors="replace").replace("\r\n", "\n"), "unasked": questions}))
