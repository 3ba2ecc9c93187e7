"""Runs a command in a terminal of its own: what comes in on stdin are the keys, stdout is the screen.
When this process ends, however it ends, so does the command (Linux).

    python terminal.py COMMAND ARGUMENT...
"""

import ctypes
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios

PR_SET_PDEATHSIG = 1

child, terminal = pty.fork()
if child == 0:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.execvp(sys.argv[1], sys.argv[1:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))

while True:
    ready, _, _ = select.select([terminal, 0], [], [])
    source, sink = (terminal, 1) if terminal in ready else (0, terminal)
    try:
        data = os.read(source, 65536)
    except OSError:  # the command has ended
        data = b""
    if not data:
        break
    while data:
        data = data[os.write(sink, data) :]
