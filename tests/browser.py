"""A browser for the tests of pages: Chromium without a window, spoken to through two pipes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), None) if shutil.which("bash") else None
"""Where it is; None where there is none, or no shell to start it with."""


class Tab:
    """One page that is open."""

    def __init__(self, into: int, out: int) -> None:
        self._into, self._out, self._number, self._rest, self._session = into, out, 0, b"", ""
        self.complaints: list[str] = []
        """What the browser refused to run or load, or what a script failed with."""
        self._loads = 0
        self._events: list[Any] = []
        self._traced = False
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def open(self, page: Path, width: int = 1280, height: int = 900, *, dark: bool = False, fragment: str = "") -> None:
        """Open a page from its folder, and wait until it is drawn."""
        self.size(width, height, dark=dark)
        self.visit("about:blank")  # another fragment alone would load nothing
        self.visit(page.absolute().as_uri() + fragment)

    def size(self, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """Be a screen of a size."""
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", media="", features=[scheme])

    def visit(self, url: str) -> None:
        """Open a page by its address, and wait until it is drawn."""
        before = self._loads
        if "loaderId" in self._call("Page.navigate", url=url):  # not just another part of the same page
            self._loaded(before)

    def follow(self, expression: str) -> None:
        """Do something that leads to another page, such as a click, and wait until that is loaded."""
        before = self._loads
        self.ask(f"{expression}, 1")
        self._loaded(before)

    def _loaded(self, before: int) -> None:
        while self._loads == before:
            self._hear(self._read())

    def ask(self, expression: str) -> Any:
        """Return the value of an expression of the page."""
        done = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def until(self, expression: str, seconds: float = 10) -> None:
        """Wait until an expression of the page is true."""
        look = f"({expression}) ? done(1) : Date.now() > end ? no('too long') : setTimeout(look, 15)"
        end = f"Date.now() + {1000 * seconds}"
        self.ask(f"new Promise((done, no) => {{ const end = {end}, look = () => {look}; look(); }})")

    def click(self, x: float, y: float) -> None:
        """Move the mouse to a point of the window, and press and release it."""
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Send one event of the mouse."""
        self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def tap(self, x: float, y: float) -> None:
        """Touch a point of the window, as with a finger."""
        self._call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self._call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def press(self, key: str, shift: bool = False) -> None:
        """Press a key and release it."""
        known = {"Tab": 9, "Enter": 13, "Space": 32}
        more = {"windowsVirtualKeyCode": known[key]} if key in known else {}
        text = {"Enter": {"text": "\r"}, "Space": {"text": " "}}.get(key, {})
        for kind, typed in (("keyDown", text), ("keyUp", {})):
            name = " " if key == "Space" else key
            self._call(
                "Input.dispatchKeyEvent", type=kind, key=name, code=key, modifiers=8 if shift else 0, **more, **typed
            )

    def paper(self) -> None:
        """Be a sheet of paper, until a page is opened anew."""
        self._call("Emulation.setEmulatedMedia", media="print")

    def traced(self, doing: Callable[[], None], categories: str = "devtools.timeline,toplevel") -> list[Any]:
        """Return what the browser's own trace says of the time in which something is done."""
        self._events = []
        session, self._session = self._session, ""
        self._call("Tracing.start", traceConfig={"includedCategories": categories.split(",")})
        self._session = session
        doing()
        self._session = ""
        self._call("Tracing.end")
        while not self._traced:
            self._hear(self._read())
        self._session, self._traced = session, False
        return self._events

    def seen(self, file: Path) -> None:
        """Draw what the window shows to a file."""
        file.write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))

    def picture(self, file: Path) -> None:
        """Draw all of the page to a file."""
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}
        shot = self._call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))

    def _call(self, method: str, **params: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._into, json.dumps(message).encode() + b"\0")
        while True:
            said = self._read()
            if said.get("id") == self._number:
                assert "error" not in said, said
                return said["result"]
            self._hear(said)

    def _hear(self, said: Any) -> None:
        """Keep what the browser says without being asked."""
        method, told = said.get("method"), said.get("params", {})
        if method == "Log.entryAdded":
            self.complaints.append(told["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(told))
        elif method == "Tracing.dataCollected":
            self._events += told["value"]
        elif method == "Tracing.tracingComplete":
            self._traced = True
        elif method == "Page.loadEventFired":
            self._loads += 1

    def _read(self) -> Any:
        while b"\0" not in self._rest:
            more = os.read(self._out, 1 << 16)
            assert more, "the browser has gone"
            self._rest += more
        said, _, self._rest = self._rest.partition(b"\0")
        return json.loads(said)


@contextmanager
def browser(home: Path) -> Iterator[Tab]:
    """Start a browser whose own files are in a folder, and end it."""
    assert CHROMIUM is not None
    theirs, into = os.pipe()
    out, answers = os.pipe()
    # It reads from descriptor 3 and writes to 4; a plain shell knows descriptors of one digit only.
    shell = f'exec "$0" "$@" 3<&{theirs} 4>&{answers}'
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={home}"]
    process = subprocess.Popen(
        ["bash", "-c", shell, CHROMIUM, *flags],
        pass_fds=(theirs, answers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    os.close(answers)
    try:
        yield Tab(into, out)
    finally:
        process.kill()
        process.wait()
        os.close(into)
        os.close(out)
