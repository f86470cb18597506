"""A page in a real browser: Chromium without a window, driven by its own protocol over two pipes.

Nothing is installed for it, no port is opened, and the network is cut off. The protocol is
https://chromedevtools.github.io/devtools-protocol/.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--remote-debugging-pipe", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PATIENCE = 60.0  #: seconds for one answer: the machine may be busy
A4 = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True, "preferCSSPageSize": True}
READ, WRITE = 3, 4  #: file descriptors by which Chromium reads and writes


def find_browser() -> str:
    """The path of Chromium; empty if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), "")


needs_browser = pytest.mark.skipif(not find_browser(), reason="no Chromium; apt-get install chromium brings it")


class LeftPage(AssertionError):
    """The page was left while something was asked of it."""


class Browser:
    """One browser with one page."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, of: int) -> None:
        self.process, self.to, self.of = process, to, of
        self.number, self.rest, self.session = 0, b"", ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask for something; what happened meanwhile goes to ``events``."""
        self.number += 1
        asked = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            asked["sessionId"] = self.session
        os.write(self.to, json.dumps(asked).encode() + b"\0")
        while (told := self._read()).get("id") != self.number:
            self.events.append(told)
        if "error" in told:
            kind = LeftPage if "navigated" in told["error"]["message"] else AssertionError
            raise kind(f"{method}: {told['error']}")
        return told["result"]

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.of], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self.of, 1 << 20) if ready else b""
            if not data:
                raise AssertionError("the browser says nothing any more")
            self.rest += data
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def open(self, page: Path, fragment: str = "") -> None:
        """Open a page from its file, and wait until it is loaded."""
        self.call("Page.navigate", url="about:blank")
        self.events.clear()
        self.call("Page.navigate", url=f"{page.resolve().as_uri()}{fragment}")
        self.wait_until("document.readyState === 'complete' && location.protocol === 'file:'")

    def wait_until(self, condition: str) -> None:
        """Wait until an expression holds, also while the page changes."""
        end = time.monotonic() + PATIENCE
        while not self.holds(condition):
            assert time.monotonic() < end, condition
            time.sleep(0.02)

    def holds(self, condition: str) -> bool:
        """Whether an expression holds; not while the page gives way to another."""
        try:
            told = self.call("Runtime.evaluate", expression=condition)
        except LeftPage:
            return False
        return bool(told["result"].get("value"))

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        told = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def press(self, key: str, text: str = "") -> None:
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def write(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def show(self, width: int = 1280, dark: bool = False) -> None:
        """Choose the width of the window and the colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 640},
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)

    def print_page(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", **A4)["data"])

    def list_requests(self) -> list[str]:
        """All that the page asked for since it was opened, the page itself first."""
        asked = (e for e in self.events if e.get("method") == "Network.requestWillBeSent")
        return [each["params"]["request"]["url"] for each in asked]

    def list_complaints(self) -> list[str]:
        """What the page wrote to the console or threw, and what its policy refused."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(e["params"]) for e in self.events if e.get("method") in kinds]


@contextmanager
def open_browser(folder: Path) -> Iterator[Browser]:
    """Start a browser that keeps all its files in a folder; it ends with the block."""
    their_in, to = os.pipe()
    of, their_out = os.pipe()
    os.set_inheritable(their_in, True)
    os.set_inheritable(their_out, True)
    # the browser wants 3 and 4, which may be taken here: a shell moves them there
    script = f'exec {READ}<&{their_in} {WRITE}>&{their_out}; exec "$@"'
    command = [find_browser(), *OPTIONS, f"--user-data-dir={folder}", "about:blank"]
    process = subprocess.Popen(
        ["bash", "-c", script, "browser", *command],
        pass_fds=(their_in, their_out),
        env={**os.environ, "HOME": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(their_in)
    os.close(their_out)
    browser = None
    try:
        browser = Browser(process, to, of)
        yield browser
    finally:
        if browser is not None:
            browser.session = ""
            browser.call("Browser.close")
        else:
            process.terminate()
        process.wait(PATIENCE)
        os.close(to)
        os.close(of)
