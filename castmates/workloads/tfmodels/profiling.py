"""Profiles the next steps of a running job when it is asked to, between two steps; see profile_page.py."""

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from castmates.workloads.jobs.tracing import clock_pair
from castmates.workloads.tfmodels import step_graph, xspace
from castmates.workloads.tfmodels.anew import Records, StorageBytes
from castmates.workloads.tfmodels.profile_page import FOLDER, GRAPH, VARIABLE, Page, PrimitiveLog
from castmates.workloads.tfmodels.step_graph import StepGraph


class Profiler:
    """Looks after each step whether a profile is wanted; it costs the job nothing while none is."""

    def __init__(
        self,
        page: Page,
        tf: Any,
        traces: str | None = None,
        log: PrimitiveLog | None = None,
        records: Records | None = None,
    ) -> None:
        self._page = page
        self._tf = tf
        self._traces = traces  # where whole traces are to be left; None: they are added up here
        self._log = log  # of oneDNN's primitives
        self._records = records  # that can be read anew
        self._done = page.asked
        self._left = 0  # steps of the profile that is being made
        self._mark: Any = None
        self._folder = ""  # of the profile that is being made
        self._steps = 0  # heartbeats so far
        self._first_step = 0  # of the profile that is being made
        self._clocks: list[tuple[int, int, int]] = []
        self._storage = StorageBytes()  # that were read for the profile that is being made
        page.offer(anew=records is not None)

    @classmethod
    def wanted(cls, tf: Any, graph: StepGraph | None = None, records: Records | None = None) -> "Profiler | None":
        """One where the runner has named a page, else None; the graph is left beside the page."""
        page = Page.from_environment()
        if page is None:
            return None
        profiler = cls(page, tf, os.environ.get(FOLDER), PrimitiveLog.wanted(), records)
        profiler.leave_graph(graph)
        return profiler

    def leave_graph(self, graph: StepGraph | None) -> None:
        """Leave the graph of the steps, as far as it was collected; only before the warm-up is over."""
        if graph is not None:
            with suppress(OSError):  # the launch goes on without it
                self._page.leave(GRAPH, step_graph.packed(graph.taken()))

    def step_is_over(self) -> None:
        """Begin, go on with, or end a profile where one is asked for."""
        self._steps += 1
        if self._steps == 1 and self._log is not None:
            self._log.warmed_up()
        if self._left:
            self._next()
        elif self._page.asked != self._done:
            self._begin()

    def _begin(self) -> None:
        self._done = self._page.asked
        self._first_step = self._steps
        try:
            self._folder = self._new_folder()
            if self._records is not None:
                self._records.begin(self._page.input)
            self._clocks = [clock_pair()]
            if self._log is not None:  # first: nobody would end a profile whose log cannot be written
                self._log.begin(self._folder)
            self._tf.profiler.experimental.start(self._folder)
            self._storage.begin()  # after the profiler, which may read its own code
        except (self._tf.errors.OpError, OSError) as error:
            if self._log is not None:
                self._log.end()
            self._answer(_error(error))
            return
        self._left = max(self._page.steps, 1)
        self._open()

    def _new_folder(self) -> str:
        if self._traces is None:
            return tempfile.mkdtemp(prefix="profile-")
        folder = Path(self._traces) / str(self._done)
        folder.mkdir(parents=True)
        return str(folder)

    def _next(self) -> None:
        self._mark.__exit__(None, None, None)
        self._left -= 1
        if self._left:
            self._open()
        else:
            self._answer(self._end())

    def _open(self) -> None:
        self._mark = self._tf.profiler.experimental.Trace(xspace.STEP, step_num=self._left, _r=1)
        self._mark.__enter__()

    def _end(self) -> dict[str, Any]:
        """Stop the profiler, which writes its trace, and add that up where it is not to be left whole."""
        self._clocks.append(clock_pair())
        self._storage.end()
        if self._log is not None:
            self._log.end()
        begin = time.monotonic()
        try:
            self._tf.profiler.experimental.stop()
            written = time.monotonic()
            if self._traces is not None:
                return self._whole(written - begin)
            found = xspace.rolled(_read(Path(self._folder)))
        except (self._tf.errors.OpError, OSError, ImportError) as error:
            return _error(error)
        return found | {"seconds": {"write": written - begin, "read": time.monotonic() - written}}

    def _whole(self, seconds: float) -> dict[str, Any]:
        """What the runner has to know of a trace that it reads itself."""
        threading = self._tf.config.threading
        return {
            "trace": self._done,
            "first_step": self._first_step,
            "clocks": self._clocks,
            "threads": [
                threading.get_intra_op_parallelism_threads(),
                threading.get_inter_op_parallelism_threads(),
            ],
            "write_seconds": seconds,
            "storage_bytes": self._storage.read,
        }

    def _answer(self, content: dict[str, Any]) -> None:
        if self._folder and (self._traces is None or "error" in content):
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = ""
        with suppress(OSError):  # the job goes on without its profile; the runner reports that nothing came
            self._page.answer(self._done, content)


def graph_wanted(tf: Any) -> StepGraph | None:
    """Begin, before a job's first step, to collect graphs, where whole traces of its steps will be asked for."""
    return StepGraph(tf) if os.environ.get(VARIABLE) and os.environ.get(FOLDER) else None


def _error(error: Exception) -> dict[str, Any]:
    return {"error": next(iter(str(error).splitlines()), type(error).__name__)}


def _read(folder: Path) -> Any:
    """The trace that the profiler has left there."""
    from google.protobuf.message import DecodeError
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    files = sorted(folder.rglob("*.xplane.pb"))
    if not files:
        raise OSError("the profiler left no trace")
    space = xplane_pb2.XSpace()
    try:
        space.ParseFromString(files[-1].read_bytes())
    except DecodeError:
        raise OSError("the profiler's trace was cut, as where the temporary folder is full") from None
    return space
