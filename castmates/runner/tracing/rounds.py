"""What a trace launch does in the place of rounds: it records some seconds of each scene, with everybody in it.

Recorders slow down what they record: usual steps right before and right after each recording show how much. What one
recorder cannot give is noted, and the others go on.
"""

import random
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from castmates.english import by_reason
from castmates.linux.processes import threads_of, tids_of
from castmates.machine.topology import read_topology
from castmates.protocols import Sample, Say
from castmates.runner import outcome as progress
from castmates.runner.profiles.rounds import LOOK, SPOILT, NoAnswer, Taken, first_steps, page_of, patience, understood
from castmates.runner.rounds import stage as eviction
from castmates.runner.rounds.pace import Steps, first_settle
from castmates.runner.rounds.round import warm_up
from castmates.runner.rounds.stage import Stage
from castmates.runner.tracing import recorders
from castmates.runner.tracing.recorded import PerfRecorder, Recorded, Span, Traced
from castmates.runner.tracing.recorders import Numbers, near_nodes, remote_sample
from castmates.runner.tracing.stacks import map_of
from castmates.study.profile_launches import traced_by
from castmates.study.spec import Launch, Scene, Tracing
from castmates.study.trace_launches import profiled_steps, scenes_of_trace
from castmates.workloads.jobs.tracing import clock_pair
from castmates.workloads.tfmodels.profile_page import GRAPH, Page, PageError

RAW = "raw"  # the folder of what recorders write
USUAL, USUAL_STEPS, LONGEST_USUAL = 2.0, 8, 30.0  # seconds of usual steps, how many at least, and seconds at most
IN_TURN = 0.2  # seconds between two looks at recorders
LONGER = 30.0  # seconds that a recording may take beyond what is wanted, until the lead's profile is there


def trace_rounds(outcome: Traced, stage: Stage, raw: Path, say: Say) -> None:
    """Record every scene, as often as is wanted; what fails is noted."""
    launch, lead = outcome.launch, outcome.launch.cohort.lead.name
    shutil.rmtree(raw, ignore_errors=True)  # of a launch that was killed
    progress.rounds_begin(outcome)
    begin = stage.now_ns()
    say("warming up")
    steps = warm_up(stage, launch)
    how = traced_by(launch.cohort) if profiled_steps(launch) else None
    first_steps(stage, lead, how.steps_before if how else 0)
    outcome.warm_up_seconds = (stage.now_ns() - begin) / 1e9
    with ExitStack() as exits:
        page = exits.enter_context(page_of(stage, lead, say)) if how else None
        outcome.graph = page.left(GRAPH) if page else None
        for number, scene in order(launch):
            recorded = _Recording(outcome, stage, scene, number, raw / scene.name / str(number)).made(page, steps)
            outcome.recorded.append(recorded)
            say(f"{scene.name}, recording {number}: {recorded.reason or _words(recorded)}")
    stage.switch([])
    outcome.measure_seconds = (stage.now_ns() - begin) / 1e9 - outcome.warm_up_seconds


def order(launch: Launch) -> list[tuple[int, Scene]]:
    """The recordings of a launch: rounds of all scenes, each in random order."""
    scenes, found = scenes_of_trace(launch.cohort), []
    for number in range(1, tracing_of(launch).rounds + 1):
        shuffled = list(scenes)
        random.Random(f"{launch.seed}/{number}").shuffle(shuffled)
        found += [(number, scene) for scene in shuffled]
    return found


def tracing_of(launch: Launch) -> Tracing:
    """What a trace launch records."""
    assert launch.design.tracing is not None
    return launch.design.tracing


def _words(recorded: Recorded) -> str:
    reasons = by_reason((name, events.reason) for name, events in recorded.events.items())
    lacking = [f"without {names} ({reason})" for reason, names in reasons]
    return "; ".join([f"{(recorded.span[1] - recorded.span[0]) / 1e9:.1f} s recorded", *lacking])


class _Recording:
    """One recording of a scene, from its switch on."""

    def __init__(self, outcome: Traced, stage: Stage, scene: Scene, number: int, raw: Path) -> None:
        self._outcome, self._stage, self._raw = outcome, stage, raw
        self._launch = outcome.launch
        self._lead = outcome.launch.cohort.lead
        self._out = Recorded(scene, number)
        self._answer: dict[str, Any] | None = None  # of the lead, on its profile
        cpus = sorted({cpu for process in stage.cast.values() for cpu in process.start.cpus})
        self._numbers = Numbers(cpus, self._pids_of)
        self._nodes = read_topology().nodes

    def made(self, page: Page | None, steps: Steps) -> Recorded:
        """Set the scene, watch usual steps, record, and watch usual ones again."""
        stage, out = self._stage, self._out
        self._set_scene()
        settle = first_settle(self._launch.design, steps, self._lead.name, self._lead.requests)
        stage.sleep_until(stage.now_ns() + int(settle * 1e9))
        stage.forget_beats()
        step = steps.of_scene.get(out.scene.name) or steps.of_member.get(self._lead.name, 1.0)
        usual = min(LONGEST_USUAL, max(USUAL, USUAL_STEPS * step))
        out.before = self._usual(usual)
        self._record(page, step)
        out.after = self._usual(usual)
        stage.read_beats()
        out.end_ns = stage.now_ns()
        for name in out.scene.active:
            process = stage.cast[name]
            out.beats[name], out.beats_lost[name] = list(process.records), process.lost
        self._find_threads()
        return out

    def _set_scene(self) -> None:
        stage, scene = self._stage, self._out.scene
        eviction.change_shares(stage, scene.shares, anew=True)
        allocator = stage.hardware.allocator
        held = "; ".join(f"{name} {schemata}" for name, schemata in allocator.read_back().items())
        self._out.masks.append((stage.now_ns(), scene.partition, held))
        self._out.switch_ns = stage.now_ns()
        stage.switch(list(scene.active))

    def _usual(self, seconds: float) -> Span:
        begin = self._stage.now_ns()
        self._stage.sleep_until(begin + int(seconds * 1e9))
        return begin, self._stage.now_ns()

    def _record(self, page: Page | None, step: float) -> None:
        """Record for the seconds that are wanted; whatever happens, recorders end.

        Everything is on before the recording begins, and what is counted ends with it: perf takes some time to be
        switched on, and seconds to write its file.
        """
        stage, out, launch = self._stage, self._out, self._launch
        tracing, hardware = tracing_of(launch), stage.hardware
        self._note_pids()
        remote = self._remote(0)
        chosen = recorders.begun(launch, out, self._raw, self._leader_or_all)
        try:
            for recorder in chosen.values():
                recorder.switch_on()
            hardware.begin_series(out.scene.active, out.round)
            self._numbers.start(out.scene.active)
            hardware.open_window(out.scene.active)
            out.clocks.append(("begin", clock_pair()))
            begin = stage.now_ns()
            asked = self._ask(page)
            self._wait(chosen, begin + int(tracing.seconds * 1e9), page, asked)
            out.span = (begin, stage.now_ns())
            out.clocks.append(("end", clock_pair()))
            readings = hardware.close_window()
            out.counts = hardware.counts()
            numbers = self._numbers.finish()
            for recorder in chosen.values():
                recorder.switch_off()
            self._note_pids()
            for name, recorder in chosen.items():
                out.events[name] = recorder.finish(self._rest)
            remote = [*(replace(each, t_ns=begin) for each in remote), *self._remote(out.span[1])]
        finally:
            self._numbers.finish()
            for recorder in chosen.values():
                recorder.kill()
        out.samples = [*numbers, *remote, *(each for each in readings if recorders.is_series(each))]
        out.totals = [each for each in readings if not recorders.is_series(each)]
        if page is not None and asked is not None:
            out.profile = self._profiled(page, asked, step)

    def _wait(self, chosen: Mapping[str, PerfRecorder], end: int, page: Page | None, asked: int | None) -> None:
        """Wait for the end of the recording; it comes sooner where a recorder's file is as large as it may be."""
        stage, look = self._stage, int(IN_TURN * 1e9)
        while (now := stage.now_ns()) < end or self._is_awaited(page, asked, now - end):
            stage.sleep_until(min(end, now + look) if now < end else now + look)
            if any(recorder.is_full for recorder in chosen.values()):
                break

    def _remote(self, t_ns: int) -> list[Sample]:
        """What lies on other nodes, read outside of the recording and noted for its edge: it may take a while."""
        cast = self._stage.cast
        return [
            sample
            for name in self._out.scene.active
            for sample in remote_sample(t_ns, name, self._pids_of(name), near_nodes(cast[name].start.cpus, self._nodes))
        ]

    def _rest(self) -> None:
        """Wait a moment for recorders, with an eye on the members."""
        self._stage.sleep_until(self._stage.now_ns() + int(IN_TURN * 1e9))

    def _is_awaited(self, page: Page | None, asked: int | None, over_ns: int) -> bool:
        """Whether the steps that the lead's framework profiles are still to come: they are to lie in the recording."""
        if page is None or asked is None or over_ns > LONGER * 1e9:
            return False
        try:
            return self._answer_to(page, asked) is None
        except (NoAnswer, PageError):
            return False  # whoever reads the answer will report why

    def _answer_to(self, page: Page, asked: int) -> dict[str, Any] | None:
        """What the lead has answered by now, which can be read once."""
        if not page.sound:
            raise NoAnswer(SPOILT)
        self._answer = self._answer or page.answered(asked)
        return self._answer

    def _ask(self, page: Page | None) -> int | None:
        """Ask the lead for a profile of its next steps."""
        if page is None or not page.sound:
            return None
        return page.ask(profiled_steps(self._launch))

    def _profiled(self, page: Page, asked: int, step: float) -> Taken:
        """What the lead answers, for which it is given time: it may be writing its trace."""
        stage, taken = self._stage, Taken(self._out.scene, self._out.round)
        deadline = stage.now_ns() + int(patience(profiled_steps(self._launch), step) * 1e9)
        try:
            while (answer := self._answer_to(page, asked)) is None:
                if stage.now_ns() > deadline:
                    raise NoAnswer("no profile came in time")
                stage.sleep_until(stage.now_ns() + int(LOOK * 1e9))
            if "error" in answer:
                raise NoAnswer(f"the profiler of {self._lead.name} failed: {answer['error']}")
            return understood(taken, answer, self._raw.parent.parent, self._raw / "profile")
        except (NoAnswer, PageError) as problem:
            return Taken(self._out.scene, self._out.round, reason=str(problem))

    def _find_threads(self) -> None:
        """Which thread each line of the lead's profile is of, as long as these threads are there."""
        from castmates.traces.reading import FILES  # not before: launches start without numpy
        from castmates.traces.xspace import address_of, lines_of_host

        taken = self._out.profile
        if taken is None or taken.folder is None:
            return
        files = sorted(file for pattern in FILES for file in taken.folder.rglob(pattern))
        lines = lines_of_host(files[-1]) if files and files[-1].suffix == ".pb" else []
        addresses = {line: address for line in lines if (address := address_of(line)) is not None}
        found: dict[int, int] = {}
        for pid in self._pids_of(self._lead.name):
            mine = tids_of(pid, addresses.values())
            found |= mine
            self._out.processes |= dict.fromkeys(mine.values(), pid)
        self._out.threads = {line: found[address] for line, address in addresses.items() if address in found}

    def _note_pids(self) -> None:
        for name in self._out.scene.active:
            for pid in self._pids_of(name):
                self._out.processes |= dict.fromkeys(threads_of(pid), pid)

    def _leader_or_all(self, name: str, leader_alone: bool) -> list[int]:
        return [self._stage.cast[name].pid] if leader_alone else self._pids_of(name)

    def _pids_of(self, name: str) -> list[int]:
        found = self._stage.freezer.stragglers(name)
        for pid in set(found) - self._outcome.pids:
            self._stage.guard_orphan(map_of(pid))
        self._outcome.pids.update(found)
        known = self._out.pids.setdefault(name, [])
        known += [pid for pid in found if pid not in known]  # looked for ten times a second: it may end before the rest
        return found
