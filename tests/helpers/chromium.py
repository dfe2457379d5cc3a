"""A real browser, driven over a pipe by the DevTools protocol, so that nothing but the browser is needed."""

import base64
import glob
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless_shell")
_PLAYWRIGHT = ("~/.cache/ms-playwright", "~/Library/Caches/ms-playwright")
_FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
)

_LAUNCH = """
import os, sys
read, write = (os.dup(int(number)) for number in sys.argv[1:3])
os.dup2(read, 3)  # where the browser listens
os.dup2(write, 4)  # and answers
os.set_inheritable(3, True)  # where they had these numbers already
os.set_inheritable(4, True)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_chromium() -> str | None:
    """The one that HCK_CHROMIUM names, one on the PATH, or one that playwright has installed."""
    named = os.environ.get("HCK_CHROMIUM")
    if named:
        return named
    found = [path for name in _NAMES if (path := shutil.which(name))]
    for folder in (os.environ.get("PLAYWRIGHT_BROWSERS_PATH"), *_PLAYWRIGHT):
        root = Path(folder or "").expanduser()
        if folder and root.is_dir():
            pattern = f"{root}/chromium*/chrome-*/*"
            wanted = ("chrome", "headless_shell", "chrome-headless-shell")
            found += [path for path in sorted(glob.glob(pattern)) if os.path.basename(path) in wanted]
    return found[0] if found else None


class Browser:
    """A headless Chromium with one page.

    Attributes
    ----------
    events : list of dict
        All that the page has reported.
    """

    def __init__(self, program: str, profile: Path) -> None:
        here, theirs = os.pipe(), os.pipe()  # to the browser, and from it
        launch = [sys.executable, "-c", _LAUNCH, str(here[0]), str(theirs[1])]
        self.process = subprocess.Popen(
            [*launch, program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(here[0], theirs[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(here[0])
        os.close(theirs[1])
        self.write, self.read = here[1], theirs[0]
        self.buffer, self.count, self.session = b"", 0, ""
        self.answers: dict[int, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the browser for something, and wait for the answer."""
        self.count += 1
        message: dict[str, Any] = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        self.wait(lambda: self.count in self.answers)
        answer = self.answers.pop(self.count)
        assert "error" not in answer, answer
        return answer["result"]

    def wait(self, done: Any, seconds: float = 30.0) -> None:
        """Listen until something holds."""
        until = time.monotonic() + seconds
        while not done():
            ready, _, _ = select.select([self.read], [], [], max(0.0, until - time.monotonic()))
            part = os.read(self.read, 2**20) if ready else b""
            if not part:
                raise TimeoutError("the browser did not answer")
            *whole, self.buffer = (self.buffer + part).split(b"\0")
            for text in whole:
                message = json.loads(text)
                if "id" in message:
                    self.answers[message["id"]] = message
                else:
                    self.events.append(message)

    def open(self, path: Path, width: int, height: int = 900, dark: bool = False, query: str = "") -> None:
        """Load a file into a window of a size."""
        self.resize(width, height, dark)
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri() + query)
        self.wait(lambda: any(event["method"] == "Page.loadEventFired" for event in self.events))

    def resize(self, width: int, height: int = 900, dark: bool = False) -> None:
        """Another window, and another scheme of colours, for the page that is there."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def wait_for(self, script: str, seconds: float = 10.0) -> None:
        """Wait until a piece of JavaScript is true."""
        until = time.monotonic() + seconds
        while not self.evaluate(script):
            if time.monotonic() > until:
                raise TimeoutError(f"never true: {script}")
            time.sleep(0.05)

    def evaluate(self, script: str) -> Any:
        """The value of a piece of JavaScript."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def picture(self, height: int | None = None) -> bytes:
        """What the window shows, or the page down to this height, as a PNG file."""
        wanted: dict[str, Any] = {"format": "png"}
        if height is not None:
            wide, high = self.evaluate("[innerWidth, document.documentElement.scrollHeight]")
            clip = {"x": 0, "y": 0, "width": wide, "height": min(height, high), "scale": 1}
            wanted |= {"captureBeyondViewport": True, "clip": clip}
        return base64.b64decode(self.call("Page.captureScreenshot", **wanted)["data"])

    def named(self, *methods: str) -> list[dict[str, Any]]:
        """What was reported under these names."""
        return [event["params"] for event in self.events if event["method"] in methods]

    def close(self) -> None:
        os.close(self.write)
        os.close(self.read)
        self.process.terminate()
        self.process.wait(10)
