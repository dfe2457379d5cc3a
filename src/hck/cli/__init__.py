"""The command line: ``hck --help``."""

import sys

from hck.cli._signals import run_interruptibly

__all__ = ["main"]


def main() -> None:
    """Run a command; what went wrong is said in a line, with an exit code of 1, or 130 if interrupted.

    Examples
    --------
    >>> import subprocess
    >>> import sys
    >>> command = [sys.executable, "-c", "from hck.cli import main; main()", "--version"]
    >>> subprocess.run(command, capture_output=True).returncode
    0
    """
    run_interruptibly(_run)


def _run() -> None:
    try:
        from hck.cli._app import run
    except ModuleNotFoundError as error:
        sys.exit(f"hck: {error.name} is not installed: the command line needs `pip install 'hck[cli]'`")
    run()
