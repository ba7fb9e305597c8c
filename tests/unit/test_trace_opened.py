"""`castmates open --trace`: the folder of a trace, on this machine only."""

import http.client
import threading

import pytest

from castmates.cli.open import _traced
from castmates.errors import CastmatesError
from castmates.results.columns.trace import PERFETTO_FILE
from castmates.results.folder import StudyFolder
from castmates.timeline.export.serving import HERE, address, server
from castmates.timeline.tables import write
from tests.unit.timeline_maker import made


@pytest.fixture
def traced(tmp_path):
    """A study with one trace, which nothing has been exported of."""
    folder = StudyFolder(tmp_path)
    write(made(100), folder.trace("lead+stream"))
    return folder


def test_the_files_are_written_where_they_are_missing_and_only_there(traced):
    folder = _traced(traced, "lead+stream")
    whole = (folder / PERFETTO_FILE).read_bytes()
    assert len(whole) > 1000
    (folder / "open.html").unlink()
    (folder / PERFETTO_FILE).write_bytes(b"")
    assert (_traced(traced, "lead+stream") / PERFETTO_FILE).read_bytes() == whole
    (folder / PERFETTO_FILE).write_bytes(b"as it was")
    assert (_traced(traced, "lead+stream") / PERFETTO_FILE).read_bytes() == b"as it was"


def test_a_trace_that_is_not_there_is_a_sentence_with_those_that_are(traced):
    with pytest.raises(CastmatesError, match=r"no trace of lead\+gups \(there are traces of lead\+stream\)"):
        _traced(traced, "lead+gups")


def test_the_server_shows_these_files_to_this_machine_and_nothing_else(traced, tmp_path):
    folder = _traced(traced, "lead+stream")
    (tmp_path / "ui").mkdir()
    (tmp_path / "ui" / "index.html").write_text("the UI")
    (tmp_path / "secret").write_text("not for them")
    with server(folder, tmp_path / "ui") as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        try:
            assert running.server_address[0] == HERE
            root = f"http://{HERE}:{running.server_port}"
            assert address(running, tmp_path / "ui", {}).startswith(f"{root}/#!/?url={root}/{PERFETTO_FILE}&")
            assert address(running, None, {}) == f"{root}/open.html"
            status, headers, body = _get(running, "/trace.pftrace")
            assert (status, body) == (200, (folder / PERFETTO_FILE).read_bytes())
            assert headers["Content-Security-Policy"].startswith("default-src 'self'")
            assert _get(running, "/")[2] == b"the UI"
            for path in ("/trace.json", "/../secret", "/%2e%2e/secret", "/..%2fsecret", "/ui"):
                assert _get(running, path)[0] == 404, path
            assert _get(running, "/trace.pftrace", host="evil.example")[0] == 403
        finally:
            running.shutdown()


def _get(running, path, host=""):
    asking = http.client.HTTPConnection(HERE, running.server_port, timeout=30)
    asking.putrequest("GET", path, skip_host=bool(host))
    if host:
        asking.putheader("Host", f"{host}:{running.server_port}")
    asking.endheaders()
    answer = asking.getresponse()
    return answer.status, answer.headers, answer.read()
