"""The day itself: which steps there are, how long they take here, and how the machine is left."""

import fcntl
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from castmates.english import counted, duration, listed
from castmates.errors import CastmatesError
from castmates.extras import SWEEP, refuse_lacking
from castmates.files import cache_folder, make_folder, mapping_if_there, refuse_foreign, replace_text
from castmates.hardware_day import doctor, page, steps, sweep
from castmates.hardware_day.bundle import Names, as_text, pack
from castmates.hardware_day.steps import COMMAND, ENDING_S, UNFINISHED, Diary, Place, Step
from castmates.linux.owner import boot_id
from castmates.linux.signals import deaf
from castmates.machine.capture.capture import captured
from castmates.machine.facts import resctrl
from castmates.machine.journal import Journal, journals
from castmates.machine.topology import Topology, read_topology
from castmates.machine.trial_records import MEMORY_PEAK
from castmates.protocols import Say
from castmates.rdt.resctrl.mounting import lease
from castmates.runner.cleanup.restore import restore_everything
from castmates.runner.cleanup.warden import guarded

# Seconds that steps take. A step is ended after three times as long and some minutes, in which a compiler may come.
CAPTURE_S, PEAK_S, COUNTERS_S, NO_RESCTRL_S = 30.0, 90.0, 45.0, 10.0
FIRST_CACHE_S, OTHER_CACHE_S = 300.0, 50.0  # of each package; of all its others
USUAL_CACHE = 100 << 20  # bytes; a larger one takes longer
TRUTH_MINUTES, TRUTH_MORE_S = 4.0, 45.0
TIMES, MORE_S = 3.0, 180.0
CLOSING_S = 60.0 + ENDING_S  # ending the last step, restoring, page and bundle
# What a capture has that changes by itself, or is no setting.
PASSING = ("mon_data/", "/meminfo", "self/status", "/cpuinfo", "assignments", "/info/")
NAMED = 3  # settings that are named
ISSUE = ".github/ISSUE_TEMPLATE/hardware.yml"


def spend(folder: Path, minutes: float, only_plan: bool, say: Say) -> bool:
    """Do what is still to be done, restore everything, and write page and bundle; whether every step ended well."""
    deadline = time.monotonic() + 60 * minutes
    if not sys.platform.startswith("linux"):
        raise CastmatesError(f"`{COMMAND}` needs Linux: it measures by what only Linux has.")
    refuse_lacking(SWEEP)
    refuse_foreign(folder, "steps.json", lambda text: COMMAND in text, COMMAND, "FOLDER")
    os.environ["CASTMATES_CACHE"] = str(cache_folder().absolute())  # the sweep runs in a folder of its own
    if only_plan:
        diary = _diary(folder)
        with TemporaryDirectory(prefix="castmates-day-") as elsewhere, steps.signals_end_us(), _mounted(diary):
            _planned(diary, _place(Path(elsewhere)), minutes, say)
        return True
    diary, planned = _diary(folder), list[Step]()
    diary.write()  # from now on the folder is known as ours
    with alone_in(folder), steps.signals_end_us():
        for sentence in restore_everything().sentences:
            say(sentence)
        before = settings_before(diary.place)
        try:
            with _mounted(diary):
                planned = _planned(diary, diary.place, minutes, say)
                follow_all(planned, diary, deadline - time.monotonic(), say)
        finally:
            if planned:
                with deaf():
                    close(planned, diary, before, say)
    return not any(outcome.status in UNFINISHED for outcome in diary.outcomes.values())


def _place(folder: Path) -> Place:
    return Place(folder, cache_folder(), Names.here(folder, cache_folder()))


def _diary(folder: Path) -> Diary:
    return Diary.of(_place(folder), MEMORY_PEAK.identity())


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Refuse a second day in the same folder; the kernel lets go when this process ends."""
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CastmatesError(f"another `{COMMAND}` runs in {folder}; wait for it, or end it.") from None
    else:
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _mounted(diary: Diary) -> Iterator[None]:
    """Have resctrl mounted for all steps, where that can be; the plan of the sweep needs it. What needs it says so."""
    with guarded() as warden:
        warden.guard_journal(Journal())
        held = None
        with suppress(CastmatesError):
            held = lease(purpose=COMMAND)
        try:
            yield
        finally:
            if held:
                diary.restored = " ".join(held.release())


# Which steps there are, and how long they take.


def all_steps(topology: Topology, sweep_seconds: float) -> list[Step]:
    """The steps in their order, with their times on this machine."""
    alone = "" if len(topology.cores()) > 1 else "it needs two cores, and only one may be used here."
    few: list[tuple[str, str, float, doctor.Run, str]] = []
    few += [("capture", "the machine in a file", CAPTURE_S, doctor.capture, "")]
    few += [("memory-peak", "memory bandwidth by cores", PEAK_S, doctor.memory_peak, "")]
    few += [("verify-counters", "whether counters count correctly", COUNTERS_S, doctor.verify_counters, "")]
    few += [("verify-rdt", "what masks and throttles do", rdt_seconds(topology), doctor.verify_rdt, "")]
    truth = 60 * TRUTH_MINUTES + TRUTH_MORE_S
    few += [("truth", "whether known losses are found", truth, doctor.truth(TRUTH_MINUTES), alone)]
    made = [Step(name, about, time_s, TIMES * time_s + MORE_S, run, cannot) for name, about, time_s, run, cannot in few]
    about = "what two programs lose, and which masks give it back"
    return [*made, Step("sweep", about, sweep_seconds, float("inf"), sweep.run, alone)]


def rdt_seconds(topology: Topology) -> float:
    """How long the trial of masks and throttles takes: one cache of each package thoroughly, and all others shortly."""
    if resctrl(Path("/"))["kernel"] is False:
        return NO_RESCTRL_S
    packages = {cpu.package for cpu in topology.cpus if cpu.id in topology.allowed}
    largest = max((llc.bytes or 0 for llc in topology.llcs), default=0)
    first = FIRST_CACHE_S * max(1.0, largest / USUAL_CACHE)
    return first * len(packages) + OTHER_CACHE_S * max(0, len(topology.llcs) - len(packages))


def _planned(diary: Diary, place: Place, minutes: float, say: Say) -> list[Step]:
    """Show the steps with their times; refuse a day that is too short for those that are left."""
    topology = read_topology()
    make_folder(place.project)
    shortest = sweep.shortest(place) if len(topology.cores()) > 1 else 0.0
    planned = all_steps(topology, shortest)
    left = [step for step in planned if not diary.is_settled(step) and not step.cannot]
    needed = sum(step.seconds for step in left) + CLOSING_S
    if needed > 60 * minutes:
        raise CastmatesError(
            f"--minutes is {minutes:g}, and the steps that are left take about {duration(needed)} here: "
            f"{listed([f'{step.name} {duration(step.seconds)}' for step in left])}."
        )
    say(f"{duration(60 * minutes)} at most:")
    for step in planned:
        is_last = step.name == "sweep" and step in left
        time_s = 60 * minutes - needed + step.seconds if is_last else step.seconds
        when = f"{duration(time_s)}{' at most' * is_last}"
        when = diary.outcomes[step.name].status if diary.is_settled(step) else step.cannot or when
        say(f"  {step.name:<16}{step.about:<54}{when}")
    return planned


def follow_all(planned: Sequence[Step], diary: Diary, seconds: float, say: Say) -> None:
    """Do what is left, one step after the other; what takes longer than it should leaves less for the next."""
    deadline = time.monotonic() + seconds - CLOSING_S
    for step in planned:
        if not diary.is_settled(step):
            steps.follow(step, diary, deadline - time.monotonic(), say)


# How the machine is left.


def settings() -> dict[str, str]:
    """What a capture has of this machine that a step may have changed: groups and masks of resctrl, and knobs."""
    files = captured(Path("/"))
    return {name: text for name, text in files.items() if not any(part in f"/{name}" for part in PASSING)}


def settings_before(place: Place) -> Mapping[str, str]:
    """The settings as they were when the day was begun; after a restart of the machine as they are now."""
    file = place.folder / ".before.json"
    kept = mapping_if_there(file)
    if kept.get("boot") != boot_id():
        kept = {"boot": boot_id(), "settings": settings()}
        replace_text(file, as_text(kept))
    return dict(kept["settings"])


def compared(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Whether all settings are as they were, in a sentence."""
    differ = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    if not differ:
        return f"Everything is as it was before: groups and masks of resctrl, and {counted(len(before), 'setting')}."
    more = [f"{len(differ) - NAMED} more"] if len(differ) > NAMED else []
    return f"Not as before, whoever changed it: {listed([f'/{name}' for name in differ[:NAMED]] + more)}."


def close(planned: Sequence[Step], diary: Diary, before: Mapping[str, str], say: Say) -> None:
    """Restore what is to be restored, compare, and write page and bundle."""
    place = diary.place
    try:
        restored = restore_everything().sentences
        # Of this process, too: what a leftover kept from being unmounted can be now.
        restored += [str(undone) for journal in journals() for undone in journal.restore_mine()]
    except CastmatesError as problem:
        restored = [str(problem)]
    diary.restored = " ".join(filter(None, [diary.restored, *restored, compared(before, settings())]))
    diary.write()
    lines = page.write(place, planned, diary)
    lines += pack(place.bundle_file, members(place), place.names)
    say("")
    for line in [*lines, diary.restored]:
        say(line)
    say(f"\nPage    {place.page_file.resolve().as_uri()}")
    say(f"Bundle  {place.bundle_file} ({place.bundle_file.stat().st_size / 1e6:.1f} MB, without names)")
    say(f"Send it with a new issue of the kind 'A machine' ({ISSUE}); `tar xf` shows first what is in it.")


def members(place: Place) -> dict[str, Path]:
    """What is sent, by its name in the bundle."""
    own = [place.steps_file, place.page_file, place.capture_file, place.project / sweep.FILE]
    own += [place.record_file(name) for name in (*page.RECORDS, sweep.MACHINE)]
    tables = sorted((place.folder / "tables").glob("*"))
    return {file.name: file for file in own if file.is_file()} | {f"tables/{file.name}": file for file in tables}
