"""Writes open.html: one click hands the trace beside it to the Perfetto UI, also from a disk."""

import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from castmates.files import replace, replace_text, writing
from castmates.results.columns.trace import OPENED
from castmates.timeline.export.layout import LAUNCH, RAN, TITLES

BYTES = "trace.js"
UI = "https://ui.perfetto.dev"
LARGEST = (
    64_000_000  # bytes of a trace that lies in the folder a second time, as a script that a page on a disk may run
)
STEP = 3 << 18  # bytes that are encoded at once; a multiple of three, or the letters would end in padding


def write_page(trace: Path, about: Mapping[str, Any], ui: str = UI) -> Path:
    """Write the page beside a trace, with the trace's bytes as a script unless it is large; return the page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("castmates.timeline.export", "."),
        autoescape=select_autoescape(["html", "j2"]),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    page, script = trace.with_name(OPENED), trace.with_name(BYTES)
    size = trace.stat().st_size
    with writing(page):
        if size <= LARGEST:
            replace(script, lambda temporary: _script(trace, temporary))
        else:
            script.unlink(missing_ok=True)
        text = environment.get_template("open.html.j2").render(
            title=_title(about, trace),
            name=trace.parent.name,
            file=trace.name,
            ui=ui,
            at=f"/#!/?{first_view(about)}",
            beside=BYTES if size <= LARGEST else "",
            size=f"{size / 1e6:.3g} MB",
            missing=about.get("missing") or [],
        )
        replace_text(page, text)
    return page


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


def _script(trace: Path, script: Path) -> None:
    with trace.open("rb") as source, script.open("wb") as out:
        out.write(b'castmatesTrace("')
        while part := source.read(STEP):
            out.write(base64.b64encode(part))
        out.write(b'");\n')
