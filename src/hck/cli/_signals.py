"""Commands end at once when they are asked to: Ctrl-C, SIGTERM, SIGHUP.

Python answers signals between steps of the main thread alone. So a command runs in another thread, while the
main one only waits, and leaves without waiting for compiled code to return.
"""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

from hck.backend.files import remove_drafts

_WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "the terminal was closed"}
_GLANCE = 0.2  # seconds: on Windows, a thread that waits without a limit cannot be interrupted
_SHOW_CURSOR = b"\x1b[?25h"  # which progress bars hide


def run_interruptibly(command: Callable[[], None]) -> None:
    """Run a command until it ends, with the error it ends with, or until a signal ends the process."""
    if threading.current_thread() is not threading.main_thread():
        command()
        return
    ended, errors = threading.Event(), []

    def work() -> None:
        try:
            command()
        except BaseException as error:  # SystemExit too, which is how commands end
            errors.append(error)
        finally:
            ended.set()

    before = _listen()
    try:
        threading.Thread(target=work, name="hck-command", daemon=True).start()
        while not ended.wait(_GLANCE):
            pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if errors:
        raise errors[0]


def _listen() -> dict[signal.Signals, Any]:
    """End the process at signals that are not ignored (as by nohup); the handlers of before."""
    known = [getattr(signal, name) for name in _WORDS if hasattr(signal, name)]
    heard = [number for number in known if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    return {number: signal.signal(number, _leave) for number in heard}


def _leave(number: int, _: FrameType | None) -> None:
    """Say why in a line, remove what is half written, and end."""
    line = f"hck: {_WORDS[signal.Signals(number).name]}\n".encode()
    with suppress(OSError):  # if nobody reads it; without buffers, whose locks the command may hold
        os.write(2, (b"\r" + _SHOW_CURSOR if os.isatty(2) else b"") + line)
    remove_drafts()
    os._exit(128 + number)
