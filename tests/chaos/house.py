"""A small project that is measured again and again, and killed again and again."""

import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from castmates import project
from castmates.study.plan_text import plan_text
from tests.builds import fill
from tests.chaos.traces import KNOB, Traces, assert_whole, parent_of
from tests.waiting import PATIENCE, wait_for
from tests.workflow.sweeps import Sweeps

# Ignores SIGTERM, and leaves a child that is nobody's: forked twice, in its own session, elsewhere, without
# environment. Only its command line shows this test that it is ours.
NASTY = """
import os, signal, sys
from castmates.workloads.heartbeat import Writer
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    os.execve("/bin/sh", ["sh", "-c", "while :; do sleep 0.05; done", sys.argv[1]], {})
os.wait()
beat = Writer.from_environment()
beat.ready()
while True:
    sum(range(20000))
    beat.beat()
"""
# The script that measures a launch, where there are no control groups.
WITH_SIGNALS = """
import runpy, sys
from castmates.runner import staging
from castmates.runner.processes.freezer import SignalFreezer
staging.choose_freezer = lambda *words: SignalFreezer()
sys.argv[0] = "scripts/measure_launch.py"
runpy.run_path("scripts/measure_launch.py", run_name="__main__")
"""
WRITING = "writing"
# Seconds, at most, after a word of the runner ("": after its start), or after it began to write what it has measured.
MOMENTS = {"": 1.5, "launching": 0.6, "all ready": 0.6, "round 1:": 1.0, "round 2:": 2.5, WRITING: 0.06}
VICTIMS = ("runner", "member", "warden", "keeper", "runner and warden")
SWEEP_VICTIMS = ("snakemake", "runner", "member", "warden", "snakemake, runner and warden")
LONGEST = 4 * PATIENCE  # seconds for a whole launch, or all that are left


class House:
    """The project, and how to measure it, kill what measures it, and look for what is left."""

    def __init__(self, folder: Path, cache: Path, chance: random.Random) -> None:
        self.sweeps = Sweeps.make(folder, cache)
        self.random = chance
        self.history: list[str] = []
        self._began = time.monotonic()
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.traces = Traces(folder, self.temporary)
        (folder / "nasty.py").write_text(NASTY)
        nasty = {"command": [sys.executable, "nasty.py", str(folder)], "progress": "heartbeat", "unit": "sum"}
        budget = {"launches": 3, "rounds": 2, "spare_rounds": 0, "window": 0.05, "settle": 0.02, "longest_settle": 0.0}
        prepare = {} if self.traces.knob is None else {"numa_balancing": "off" if self.traces.knob != "0" else "on"}
        self.sweeps.write_study(
            {
                "machine": {"prepare": prepare},
                "antagonists": ["stream", "nasty", "brief"],
                "workloads": {"nasty": nasty, "brief": {"command": "sleep 0.02"}},
                "budget": budget | {"longest_window": 1.0, "longest_settle": 0},
            }
        )
        with contextlib.chdir(folder):
            fill(cache)
            self.plan = project.load().plan()
        (folder / "plan.json").write_text(plan_text(self.plan))
        self._victims = itertools.cycle(self.random.sample(VICTIMS, len(VICTIMS)))
        self._sweep_victims = itertools.cycle(self.random.sample(SWEEP_VICTIMS, len(SWEEP_VICTIMS)))

    @property
    def environment(self) -> dict[str, str]:
        mine = {"TMPDIR": str(self.temporary), "CASTMATES_STATE": str(self.temporary / "state")}
        return self.sweeps.environment() | mine

    def kill_a_launch(self) -> None:
        """Kill something at a random moment of one launch, and look what remains."""
        victim, moment = next(self._victims), self.random.choice(list(MOMENTS))
        kind = self.random.choice(("cgroup", "signals"))
        wait = self.random.uniform(0, MOMENTS[moment])
        launch = self._choose_launch()
        self._note(f"{victim} of launch {launch} ({kind}) {wait:.3f} s after '{moment}'")
        folder = self.sweeps.results / "launches" / launch
        shutil.rmtree(folder, ignore_errors=True)
        runner = self.start_launch(launch, kind)
        has_come = {WRITING: lambda: any(folder.glob("*windows*"))}.get(moment, lambda: moment in self.said())
        wait_for(lambda: has_come() or runner.poll() is not None, f"the launch is at '{moment}'", self.said)
        time.sleep(wait)
        for pid in self._members_of(runner.pid, victim):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        runner.wait(LONGEST)
        assert "Traceback" not in self.said(), self.said()
        if victim == "runner and warden":
            self.measure_whole_launch(self._choose_launch())
        elif runner.returncode != -signal.SIGKILL:
            self._check_end(runner.returncode)
        self.assert_clean()

    def kill_a_sweep(self) -> None:
        """Kill something at a random moment of a sweep, and look what remains."""
        victim, wait = next(self._sweep_victims), self.random.uniform(0, 4)
        self._choose_launch()
        self._note(f"{victim} of a sweep {wait:.3f} s after its first launch began")
        self.traces.runners.clear()
        with self._log.open("w") as log:
            sweep = subprocess.Popen(
                ["snakemake", "--cores", "all"],
                cwd=self.sweeps.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_for(lambda: self._runner_of_sweep() or sweep.poll() is not None, "a launch has begun", self.said)
        time.sleep(wait)
        runner = self._runner_of_sweep()
        chosen = self._members_of(runner, victim.removeprefix("snakemake, ")) if runner else []
        for pid in [sweep.pid] * victim.startswith("snakemake") + chosen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        sweep.wait(LONGEST)
        assert "Traceback" not in self.said(), self.said()
        if "and warden" in victim:
            self.measure_whole_launch(self._choose_launch())
        self.assert_clean()

    def start_launch(self, launch: str, kind: str = "cgroup") -> subprocess.Popen:
        """Start to measure a launch as the workflow would."""
        script = ["-c", WITH_SIGNALS] if kind == "signals" else ["scripts/measure_launch.py"]
        output = self.sweeps.results / "launches" / launch / "launch.json"
        with self._log.open("w") as log:
            runner = subprocess.Popen(
                [sys.executable, *script, launch, "--plan", "plan.json", "--output", output],
                cwd=self.sweeps.folder,
                env=self.environment | {"PYTHONPATH": str(self.sweeps.folder)},
                stdout=log,
                stderr=log,
            )
        self.traces.runners.add(runner.pid)
        return runner

    def measure_whole_launch(self, launch: str) -> None:
        """Measure a launch to its end, which must be a good one."""
        runner = self.start_launch(launch)
        runner.wait(LONGEST)
        assert runner.returncode == 0, self.said()
        record = json.loads((self.sweeps.results / "launches" / launch / "launch.json").read_text())
        assert record["status"] == "measured", record["reason"]

    def complete(self) -> None:
        """Give the same command until all is measured, failed launches forgotten once."""
        self._note("the study is completed")
        done = subprocess.run(
            ["castmates", "sweep", "--retry"],
            cwd=self.sweeps.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.assert_clean()
        self._note("done")

    def end(self) -> None:
        """Kill who is left where the test has failed."""
        for pid in self.traces.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.traces.turned():
            KNOB.write_text(str(self.traces.knob))

    def assert_clean(self) -> None:
        """Nobody and nothing is left, and what is there is whole."""
        wait_for(lambda: not self.traces.everything(), "nothing is left", self.traces.everything)
        assert_whole(self.sweeps.results)

    def _note(self, words: str) -> None:
        self.history.append(f"{time.monotonic() - self._began:6.1f} s: {words}")

    def said(self) -> str:
        """What the process in question has printed so far."""
        return self._log.read_text()

    @property
    def _log(self) -> Path:
        return self.sweeps.folder / "said.log"

    def _choose_launch(self) -> str:
        """A launch that is not measured, after one was forgotten where all are."""
        launches = [launch.path for launch in self.plan.launches]
        open_ = [launch for launch in launches if launch not in self.sweeps.launches()]
        if open_:
            return self.random.choice(open_)
        launch = self.random.choice(launches)
        shutil.rmtree(self.sweeps.results / "launches" / launch)
        return launch

    def _runner_of_sweep(self) -> int | None:
        """The runner at work in a sweep; those that went before it stay in the books."""
        alive = self.traces.processes()
        return next((pid for pid in sorted(self.traces.runners, reverse=True) if pid in alive), None)

    def _members_of(self, runner: int, victim: str) -> list[int]:
        """Whom to kill: the runner, its warden, the keeper of a command, or anybody else below the runner."""
        below = self._below(runner)
        warden = [pid for pid, words in below.items() if "castmates.runner.cleanup.outliving" in words]
        keepers = [pid for pid, words in below.items() if "/bin/loop" in words]
        members = [pid for pid in below if pid not in warden]
        chosen = {
            "runner": [runner],
            "runner and warden": [*warden, runner],
            "warden": warden,
            "keeper": keepers,
            "member": members,
        }.get(victim, [])
        return chosen if "runner" in victim else [self.random.choice(chosen)] if chosen else []

    def _below(self, runner: int) -> dict[int, str]:
        found = {}
        for pid, words in self.traces.processes().items():
            above = pid
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                while above > 1:
                    above = parent_of(above)
                    if above == runner:
                        found[pid] = words
                        break
        return found

    def _check_end(self, status: int) -> None:
        """A runner that was not killed itself has ended in good order: with a record, or with a sentence."""
        last = self.said().strip().splitlines()[-1]
        assert status == 0 or (status == 1 and last.startswith("castmates: ")), self.said()
