"""Run an official Model Garden command, unmodified, with a heartbeat for each step of its training loop.

    python -m castmates.workloads.tfmodels.attach [options] -- official.vision.train --experiment=… --mode=train …

The command's own training loop runs many steps in one call. It is called here for one step at a time, and beats in
between. Nothing else of it is touched, save that its summaries are not written where TensorBoard is not installed.
"""

import argparse
import os
import runpy
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from castmates.workloads.heartbeat import HeartbeatError, Writer
from castmates.workloads.phases import PhasesError, open_writer
from castmates.workloads.tfmodels import phases, profiling, runtime, step_graph, wish
from castmates.workloads.tfmodels.ending import Ending, leave
from castmates.workloads.tfmodels.profile_page import PageError

WARM_UP_STEPS = 6  # the first of them traces and compiles


class Pulse:
    """Counts the steps: ready after the warm-up, then one beat for each."""

    def __init__(self, beats: Writer, profiler: profiling.Profiler | None = None) -> None:
        self._beats = beats
        self._profiler = profiler
        self._ending: Ending | None = None
        self.graph: step_graph.StepGraph | None = None  # of the steps, from before the first to the end of the warm-up
        self.steps = 0

    def step(self) -> None:
        """One step is done; leave here if asked to."""
        self.steps += 1
        if self._ending is None:
            self._ending = Ending(self._beats)
        if self.steps == WARM_UP_STEPS:
            if self._profiler is not None:
                self._profiler.leave_graph(self.graph)
            self._beats.ready()
        elif self.steps > WARM_UP_STEPS:
            self._beats.beat()
            if self._profiler is not None:
                self._profiler.step_is_over()
        if self._ending.told:
            leave(self._beats)


def main() -> int:
    """Run the command that stands after `--`."""
    given = _arguments()
    try:
        beats = Writer.from_environment()
    except HeartbeatError as error:
        return _complain(str(error))
    threads = given.threads or len(os.sched_getaffinity(0))
    runtime.prepare(threads, onednn=given.onednn == "on", device=given.device)
    try:
        runtime.spare(one_job=False)
        tf = runtime.tensorflow(threads, given.inter_threads or threads)
        import orbit
    except ModuleNotFoundError as error:
        beats.failed()
        return _complain(runtime.where_to_run(error))
    try:
        pulse = Pulse(beats, profiling.Profiler.wanted(tf))
    except PageError as error:
        beats.failed()
        return _complain(str(error))
    try:
        written = phases.StepPhases("train", open_writer()) if wish.phases_wanted() else None
    except PhasesError as error:
        beats.failed()
        return _complain(str(error))
    _hook(orbit.StandardTrainer, tf.constant(1), pulse, written)
    pulse.graph = profiling.graph_wanted(tf)
    if find_spec("tensorboard") is None:
        print("TensorBoard is not installed here: the command's summaries are not written.", file=sys.stderr)
        orbit.utils.SummaryManager.write_summaries = _write_nothing
    sys.argv = list(given.command)
    try:
        runpy.run_module(given.command[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code not in (None, 0):
            beats.failed()
            raise
    except BaseException:
        beats.failed()
        raise
    if pulse.steps < WARM_UP_STEPS:
        beats.failed()
        return _complain(
            f"{given.command[0]} ended after {pulse.steps} steps of an orbit training loop, before the "
            f"{WARM_UP_STEPS} of its warm-up were over: --mode must train, and trainer.train_steps be larger."
        )
    leave(beats)
    return 0


def _hook(trainer: Any, one: Any, pulse: Pulse, written: phases.StepPhases | None) -> None:
    """Let every training loop that is made from now on run step by step, with its phases where they are wanted."""
    original = trainer.create_train_loop_fn

    def create(self: Any) -> Callable[[Any, Any], None]:
        loop = original(self)
        if written is not None:
            from castmates.workloads.tfmodels import marks

            loop = marks.marked_loop(self, loop, written)

        def stepwise(iterator: Any, steps: Any) -> None:
            for _ in range(int(steps)):
                loop(iterator, one)
                pulse.step()

        return stepwise

    trainer.create_train_loop_fn = create


def _write_nothing(_manager: Any, _summaries: Any) -> None:
    """Stand where summaries would be written."""


def _arguments() -> argparse.Namespace:
    parser = wish.OneSentence(
        prog="python -m castmates.workloads.tfmodels.attach",
        description="Run an official Model Garden command with a heartbeat for each step of its training loop.",
    )
    wish.add_runtime(parser)
    parser.add_argument("command", nargs="+", metavar="-- MODULE", help="such as official.vision.train, and its words")
    given = parser.parse_args()
    if not given.command[0].startswith("official."):
        parser.error(f"'{given.command[0]}' is no module of the Model Garden: name one such as official.vision.train")
    return given


def _complain(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
