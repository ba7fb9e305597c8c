"""`castmates trace open`: the folder of a trace, on this machine only."""

import http.client
import threading

import pytest

from castmates.cli.trace import _opened
from castmates.errors import CastmatesError
from castmates.results.columns.trace import PERFETTO_FILE
from castmates.results.folder import StudyFolder
from castmates.timeline.export.page import LOCALHOST, Server, address
from castmates.timeline.tables import write
from tests.unit.timeline_maker import made


@pytest.fixture
def traced(tmp_path):
    """A study with one trace, which nothing has been exported of."""
    folder = StudyFolder(tmp_path)
    write(made(100), folder.trace("lead+stream"))
    return folder


def test_the_files_are_written_where_they_are_missing_and_only_there(traced):
    folder = _opened(traced, "lead+stream")
    whole = (folder / PERFETTO_FILE).read_bytes()
    assert len(whole) > 1000
    (folder / "open.html").unlink()
    (folder / PERFETTO_FILE).write_bytes(b"")
    assert (_opened(traced, "lead+stream") / PERFETTO_FILE).read_bytes() == whole
    (folder / PERFETTO_FILE).write_bytes(b"as it was")
    assert (_opened(traced, "lead+stream") / PERFETTO_FILE).read_bytes() == b"as it was"


def test_a_trace_that_is_not_there_is_a_sentence_with_those_that_are(traced):
    with pytest.raises(CastmatesError, match=r"no trace of lead\+gups \(there are traces of lead\+stream\)"):
        _opened(traced, "lead+gups")


@pytest.fixture
def running(traced, tmp_path):
    """A server of the trace, with something like the UI."""
    (tmp_path / "ui").mkdir()
    (tmp_path / "ui" / "index.html").write_text("the UI")
    (tmp_path / "secret").write_text("not for them")
    with Server(_opened(traced, "lead+stream"), tmp_path / "ui") as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        yield one
        one.shutdown()


def test_the_server_shows_these_files_to_this_machine_and_nothing_else(running, traced, tmp_path, capfd):
    assert running.server_address[0] == LOCALHOST
    root = running.root
    assert address(running, tmp_path / "ui", {}).startswith(f"{root}/#!/?url={root}/{PERFETTO_FILE}&")
    assert address(running, None, {}) == f"{root}/open.html"
    status, headers, body = _get(running, f"/{running.token}/trace.pftrace")
    assert (status, body) == (200, (traced.trace("lead+stream") / PERFETTO_FILE).read_bytes())
    assert headers["Content-Security-Policy"].startswith("default-src 'self'")
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert _get(running, f"/{running.token}/")[2] == b"the UI"
    for path in ("trace.json", "../secret", "%2e%2e/secret", "..%2fsecret", "ui", "%00", "trace.js", "a%00/../secret"):
        assert _get(running, f"/{running.token}/{path}")[0] == 404, path
    for path in (
        "/",
        "/trace.pftrace",
        "//trace.pftrace",
        "/open.html",
        f"/{running.token[:-1]}/trace.pftrace",
        "/%ff/",
    ):
        assert _get(running, path)[0] == 404, path
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("host", ["evil.example:{}", "127.0.0.1:1", "127.0.0.1", "localhost:{}@evil", ""])
def test_whoever_comes_by_another_name_is_refused(running, host):
    path = f"/{running.token}/trace.pftrace"
    assert _get(running, path, Host=host.format(running.server_port))[0] == 403
    assert _get(running, path, Host=f"localhost:{running.server_port}")[0] == 200


@pytest.mark.parametrize(
    ("site", "mode", "dest", "status"),
    [
        ("cross-site", "no-cors", "script", 403),
        ("cross-site", "cors", "empty", 403),
        ("same-site", "no-cors", "image", 403),
        ("cross-site", "navigate", "iframe", 403),
        ("cross-site", "navigate", "document", 200),  # a link that was clicked shows nothing to the page that has it
        ("same-origin", "cors", "empty", 200),
        ("none", "navigate", "document", 200),
    ],
)
def test_pages_of_others_are_refused(running, site, mode, dest, status):
    asked = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
    assert _get(running, f"/{running.token}/trace.pftrace", **asked)[0] == status


def _get(running, path, **headers):
    asking = http.client.HTTPConnection(LOCALHOST, running.server_port, timeout=30)
    asking.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        asking.putheader(name, value)
    asking.endheaders()
    answer = asking.getresponse()
    return answer.status, answer.headers, answer.read()
