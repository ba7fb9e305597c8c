"""Drives a headless Chromium over the two pipes of its DevTools protocol; needs nothing but the standard library."""

import base64
import fcntl
import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LONGEST = 60.0  # seconds that one answer may take
# Our own pages only, so the sandbox, for which root or a set-uid helper would be needed, is not missed.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--mute-audio",
    "--remote-debugging-pipe",
)  # fmt: skip
WITH_US = ("setpriv", "--pdeathsig", "KILL")  # ends when we do, whatever ends us
ON_3_AND_4 = 'exec "${@:3}" 3<&"$1" 4>&"$2"'  # where the browser looks for its pipes


class Browser:
    """A running Chromium, and the two pipes to it."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.log = folder / "chromium.log"
        with self.log.open("w") as log:
            (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
            theirs = [their_in, their_out]
            try:
                theirs += [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (their_in, their_out)]
                self.process = subprocess.Popen(
                    [*WITH_US, "bash", "-c", ON_3_AND_4, "bash", *map(str, theirs[2:]), *command, *FLAGS,
                     f"--user-data-dir={folder / 'profile'}"],
                    pass_fds=theirs[2:], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    env={**os.environ, **environment},
                )  # fmt: skip
            except BaseException:
                _close(our_in, our_out)
                raise
            finally:
                _close(*theirs)
        self._in, self._out = our_in, our_out
        self._rest, self._last = b"", 0
        self.events: list[dict] = []

    def __enter__(self) -> "Browser":
        """Itself; it ends with the launch, whatever happens in it."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.end()

    def call(self, method: str, session: str | None = None, **params: object) -> dict:
        """Send a command and return its result; events that come in between are kept."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params} | ({"sessionId": session} if session else {})
        self._write(message)
        until = time.monotonic() + LONGEST
        while True:
            answer = self._read(until, method)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def wait(self, event: str, session: str) -> None:
        """Wait for an event that has not been seen since the last `forget`."""
        until = time.monotonic() + LONGEST
        while not any(one.get("method") == event and one.get("sessionId") == session for one in self.events):
            self.events.append(self._read(until, event))

    def end(self) -> None:
        """End it, with its helpers, who would go on writing into its folder."""
        try:
            self._write({"id": 0, "method": "Browser.close"})
            self.process.wait(LONGEST)
        except (RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        _close(self._in, self._out)

    def _write(self, message: dict) -> None:
        data = json.dumps(message).encode() + b"\0"
        try:
            while data:
                data = data[os.write(self._out, data) :]
        except BrokenPipeError:
            raise self._ended() from None

    def _ended(self) -> RuntimeError:
        return RuntimeError(
            f"Chromium ended with {self.process.wait()}: {self.log.read_text(errors='replace')[-2000:]}"
        )

    def _read(self, until: float, what: str) -> dict:
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError(
                    f"Chromium has not answered {what} within {LONGEST:g} s; its words are in {self.log}"
                )
            if not (part := os.read(self._in, 1 << 20)):
                raise self._ended()
            self._rest += part
        first, _, self._rest = self._rest.partition(b"\0")
        return json.loads(first)


def _close(*ends: int) -> None:
    for end in ends:
        os.close(end)


class Page:
    """A tab, in which one file at a time is open."""

    def __init__(self, browser: Browser, target: str = "") -> None:
        """Make a tab, or take one that is there."""
        self.browser = browser
        target = target or browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: object) -> dict:
        """Send a command to this tab."""
        return self.browser.call(method, self.session, **params)

    def open(self, file: Path, width: int = 1280, dark: bool = False) -> None:
        """Load a file from disk in a window of this width, and wait until it is there."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.media("", dark)
        self.browser.events.clear()
        self.call("Page.navigate", url=file.as_uri())
        self.browser.wait("Page.loadEventFired", self.session)

    def media(self, kind: str = "", dark: bool = False) -> None:
        """Show it as on screen or as in print, in light or in dark."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=kind, features=[scheme])

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if problem := done.get("exceptionDetails"):
            raise RuntimeError(problem.get("exception", {}).get("description") or problem["text"])
        return done["result"].get("value")

    def press(self, key: str, text: str = "") -> None:
        """Press a key: Tab, Enter, or a letter with its text."""
        codes = {"Tab": 9, "Enter": 13}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text if kind == "keyDown" else "",
                      windowsVirtualKeyCode=codes.get(key, 0))  # fmt: skip

    def unfold(self) -> None:
        """Open every folded part, as whoever looks for something in it does."""
        self.ask("document.querySelectorAll('details').forEach(one => { one.open = true; })")

    def pdf(self) -> bytes:
        """The page on A4."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])

    def shot(self, file: Path, whole: bool = True) -> None:
        """A picture of the page."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]))

    def complaints(self) -> list[str]:
        """Exceptions, errors and warnings on the console, and requests that failed, since the page was opened."""
        found = []
        for event in self.browser.events:
            params, method = event.get("params", {}), event.get("method")
            if method == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"]["exception"].get("description", "exception"))
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(str([one.get("value") for one in params["args"]]))
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif method == "Network.loadingFailed":
                found.append(params["errorText"])
        return found

    def requests(self) -> list[str]:
        """What was asked for since the page was opened, itself included."""
        sent = [one["params"] for one in self.browser.events if one.get("method") == "Network.requestWillBeSent"]
        return [one["request"]["url"] for one in sent]
