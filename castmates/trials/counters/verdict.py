"""What a counter came to for a task with a known answer -> whether the count is right. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from castmates.protocols import Status
from castmates.trials.counters.tasks import Trial

Verdict = Literal["verified", "wrong", "not checked"]
APART, APART_SHARE = 3.0, 0.002  # counts by which a count and the kernel's own account of it may differ, or a share
CLOCKS_IN_DOUBT = 0.03  # that others' work, interrupts and hypervisors may make of it
USER_ONLY = "user mode only"


@dataclass(frozen=True, slots=True)
class Portion:
    """What was counted in one portion of a task."""

    units: int
    value: float | None
    status: Status = "counted"
    note: str = ""
    account: float | None = None  # the program's own, of the same portion


@dataclass(frozen=True, slots=True)
class Judged:
    """The judgement of a trial."""

    verdict: Verdict
    measured: float | None = None  # for each unit
    account: float | None = None
    why: str = ""


def judge(trial: Trial, short: Sequence[Portion], long: Sequence[Portion]) -> Judged:
    """Hold the difference between portions against what is known; disturbances add, so the least of each counts."""
    portions = [*short, *long]
    if not short or not long:
        return Judged("not checked", why="it was not tried")
    unlike = next((portion for portion in portions if portion.status != "counted" or portion.value is None), None)
    if unlike is not None:
        return Judged("not checked", why=f"{unlike.status}: {unlike.note}" if unlike.note else unlike.status)
    measured = _slope(short, long, [portion.value for portion in short], [portion.value for portion in long])
    account = _slope(short, long, [portion.account for portion in short], [portion.account for portion in long])
    if measured is None:
        return Judged("not checked", why="the two portions are equally long")
    if trial.in_kernel and any(USER_ONLY in portion.note for portion in portions):
        return Judged(
            "not checked", measured, account, "counted in user mode only here, and this happens in the kernel"
        )
    agrees = account is None or _agree(trial, measured, account, trial.long - trial.short)
    if trial.low <= measured <= trial.high:
        if agrees:
            return Judged(
                "verified",
                measured,
                account,
                USER_ONLY if any(USER_ONLY in portion.note for portion in portions) else "",
            )
        return Judged("wrong", measured, account, f"the kernel's own account differs: {account:.6g}")
    if trial.account == "CPU time" and abs(measured - trial.per_unit) <= CLOCKS_IN_DOUBT * trial.per_unit:
        why = "the two clocks differ by more than is let pass, as they do under others' load: try on a quiet machine"
        return Judged("not checked", measured, account, why)
    if account is not None and agrees:
        return Judged("not checked", measured, account, "the kernel's own account agrees: the task was disturbed here")
    return Judged("wrong", measured, account, f"{trial.low:.6g} to {trial.high:.6g} was expected")


def combined(ours: Judged, perf_stat: Judged | None) -> Judged:
    """Judge a count: it is right only if it is right by every method that counted it."""
    if ours.verdict == "verified" and perf_stat is not None and perf_stat.verdict == "wrong":
        return Judged("wrong", ours.measured, ours.account, f"perf stat: {perf_stat.measured:.6g}, {perf_stat.why}")
    return ours


def _slope(
    short: Sequence[Portion], long: Sequence[Portion], at_short: Sequence[float | None], at_long: Sequence[float | None]
) -> float | None:
    """Return by how much the least grows with each unit; None where something is not known."""
    few, many = [v for v in at_short if v is not None], [v for v in at_long if v is not None]
    units = long[0].units - short[0].units
    if len(few) < len(short) or len(many) < len(long) or units <= 0:
        return None
    return (min(many) - min(few)) / units


def _agree(trial: Trial, measured: float, account: float, units: int) -> bool:
    """Check whether the kernel's own account agrees, but for a few at the edges."""
    if trial.account == "CPU time":
        return abs(measured - account) <= CLOCKS_IN_DOUBT * account
    return abs(measured - account) <= max(APART / units, APART_SHARE * account)
