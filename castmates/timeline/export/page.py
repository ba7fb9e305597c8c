"""Writes open.html: one click hands the trace in it to the Perfetto UI, also from a disk."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from castmates.files import replace, writing
from castmates.results.columns.trace import OPENED
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
