"""The ledger: for every reason one window just inside its limit and one just beyond it."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.protocols import Sample
from castmates.runner.ledger import TICK, Ledger
from castmates.runner.window import Progress, Window
from castmates.study.model import Limits
from castmates.study.spec import UNMANAGED, Design, Member, Scene

SECONDS = 2.0
LEAD, BESIDE, FROZEN, PLACEBO = "lead@0", "beside@1", "frozen@2,3", "placebo:1"
PLACES = {LEAD: (0,), BESIDE: (1,), FROZEN: (2, 3), PLACEBO: (1,)}
CPUS = (0, 1, 2, 3)
DESIGN = Design(
    rounds=1,
    spare_rounds=0,
    window=SECONDS,
    longest_window=5.0,
    settle=0.0,
    longest_settle=0.0,
    steps=10,
    limits=Limits(steal=0.03, foreign=0.05, swap=8),
)
FORGIVEN = 2 * TICK
A_LITTLE = 1e-6


def member(name: str) -> Member:
    return Member(
        name=name,
        workload=name.partition("@")[0],
        role="lead" if name == LEAD else "antagonist",
        cpus=PLACES[name],
        nodes=(),
        command=("program",),
        environment=None,
        environment_key=None,
        content="c",
        progress="heartbeat",
        unit="step",
        variables={},
        ready_within=1.0,
    )


def records(count: int) -> list[tuple[int, int]]:
    return [(1000 * (step + 1), step) for step in range(count)]


@dataclass
class Case:
    """A clean window of the lead beside one antagonist, to be spoilt by a test."""

    active: tuple[str, ...] = (LEAD, BESIDE)
    beats: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)  # heartbeats of the frozen that nobody has read
    thawed: set[str] = field(default_factory=set)
    strays: dict[str, set[int]] = field(default_factory=dict)
    values: dict[tuple[str, str], float | None] = field(default_factory=dict)
    runner_s: float = 0.0
    runner_cpus: frozenset[int] = frozenset()
    samples: bool = True  # False: this machine gives none at all

    def readings(self) -> dict[tuple[str, str], float | None]:
        clean: dict[tuple[str, str], float | None] = {("host", "pswpin"): 0.0, ("host", "pswpout"): 0.0}
        for cpu in CPUS:
            clean |= {(f"cpu{cpu}", metric): 0.0 for metric in ("user_s", "system_s", "irq_s", "steal_s")}
        for name in self.active:
            clean[name, "cpu_s"] = 1.5
            clean[f"cpu{PLACES[name][0]}", "user_s"] = 1.5
        return clean | self.values if self.samples else {}

    def reasons(self) -> list[str]:
        cast = {
            name: SimpleNamespace(
                start=SimpleNamespace(cpus=cpus), reader=SimpleNamespace(head=7 + self.moved.get(name, 0)), seen=7
            )
            for name, cpus in PLACES.items()
        }
        stage = SimpleNamespace(
            cast=cast,
            freezer=SimpleNamespace(is_frozen=lambda name: name not in self.thawed),
            cpus_of_threads=lambda name: self.strays.get(name, set(PLACES[name])),
        )
        window = Window(
            Scene(name="s", kind="corun", mix="m", active=self.active, placebos=(), partition=UNMANAGED),
            open_ns=1_000_000_000,
            close_ns=1_000_000_000 + int(SECONDS * 1e9),
            progress={
                name: Progress(records(self.beats.get(name, 20)), self.lost.get(name, 0)) for name in self.active
            },
            samples=[Sample(0, "procstat", *key, value) for key, value in self.readings().items()],
            runner_s=self.runner_s,
        )
        members = {name: member(name) for name in (LEAD, BESIDE, FROZEN)}
        return Ledger(stage, members, DESIGN, self.runner_cpus).judge(window)  # type: ignore[arg-type]


def test_a_clean_window_counts():
    assert Case().reasons() == []
    assert Case(active=(LEAD, PLACEBO)).reasons() == []


@pytest.mark.parametrize("count", range(2, 10))
def test_two_records_of_the_lead_make_a_rate(count):
    assert Case(beats={LEAD: count}).reasons() == []


@pytest.mark.parametrize("count", [0, 1])
def test_a_lead_without_a_whole_step_has_no_rate(count):
    (reason,) = Case(beats={LEAD: count}).reasons()
    assert reason == "too few steps: lead@0 completed none in 2.0 s (raise budget.longest_window)"


def test_one_overwritten_heartbeat_is_one_too_many():
    assert Case(lost={BESIDE: 0}).reasons() == []
    (reason,) = Case(lost={BESIDE: 1}).reasons()
    assert reason == "lost heartbeats: 1 of beside@1 were overwritten before they were read"
    assert len(Case(lost={LEAD: 3}, beats={LEAD: 0}).reasons()) == 1


@pytest.mark.parametrize("name", [BESIDE, PLACEBO])
@pytest.mark.parametrize(
    ("beats", "cpu_s", "expected"),
    [
        (1, 0.0, []),
        (0, 0.01 * SECONDS, []),  # a long run of a command: no heartbeat, but work
        (0, 0.01 * SECONDS - A_LITTLE, ["no progress"]),
        (0, 0.0, ["no progress"]),
    ],
)
def test_no_heartbeat_needs_cpu_time(name, beats, cpu_s, expected):
    case = Case(active=(LEAD, name), beats={name: beats}, values={(name, "cpu_s"): cpu_s, ("cpu1", "user_s"): cpu_s})
    assert [reason.partition(":")[0] for reason in case.reasons()] == expected
    assert all(name in reason for reason in case.reasons())


def test_the_frozen_must_be_frozen():
    assert Case(moved={FROZEN: 1}).reasons() == ["not frozen: frozen@2,3 made 1 steps"]
    assert Case(thawed={FROZEN}).reasons() == ["not frozen: frozen@2,3"]
    assert Case(thawed={FROZEN}, moved={FROZEN: 2}).reasons() == ["not frozen: frozen@2,3 made 2 steps"]
    assert Case(thawed={PLACEBO}).reasons() == ["not frozen: placebo:1"]
    assert Case(thawed={LEAD, BESIDE}, moved={LEAD: 5, BESIDE: 5}).reasons() == []  # they run, as they should


def test_a_thread_that_may_leave_its_cpus_is_off_them():
    assert Case(strays={LEAD: set()}).reasons() == []
    assert Case(strays={LEAD: {0, 3, 1}}).reasons() == ["off its CPUs: a thread of lead@0 may run on 1, 3"]
    assert Case(strays={FROZEN: {0}}).reasons() == []  # a frozen one runs nowhere
    everyone = (LEAD, BESIDE, FROZEN)
    assert Case(active=everyone, strays={FROZEN: {2}}).reasons() == []  # one of its CPUs is enough


@pytest.mark.parametrize("cpu", CPUS)  # the lead runs on 0, an antagonist on 1, nobody on 2 and 3
def test_stolen_time_counts_on_every_cpu_of_the_block(cpu):
    limit = DESIGN.limits.steal * SECONDS
    assert Case(values={(f"cpu{cpu}", "steal_s"): limit}).reasons() == []
    (reason,) = Case(values={(f"cpu{cpu}", "steal_s"): limit + 0.01}).reasons()
    assert reason == f"steal: the hypervisor took 3.5% of CPU {cpu} (limit 3.0%)"


def test_a_cpu_outside_the_block_is_nobodys_business():
    values = {("cpu4", "steal_s"): 2.0, ("cpu4", "user_s"): 2.0, ("cpu4", "system_s"): 0.0, ("cpu4", "irq_s"): 0.0}
    assert Case(values=values).reasons() == []


ALLOWED = DESIGN.limits.foreign * SECONDS + FORGIVEN


@pytest.mark.parametrize("metric", ["user_s", "system_s", "irq_s"])
@pytest.mark.parametrize(("cpu", "own", "place"), [(0, 1.5, "lead@0"), (1, 1.5, "beside@1"), (3, 0.0, "CPU 3")])
def test_others_time_beside_a_member_and_on_a_quiet_cpu(metric, cpu, own, place):
    before = own if metric == "user_s" else 0.0
    assert Case(values={(f"cpu{cpu}", metric): before + ALLOWED - A_LITTLE}).reasons() == []
    (reason,) = Case(values={(f"cpu{cpu}", metric): before + ALLOWED + A_LITTLE}).reasons()
    assert reason == f"foreign load: others took 5% of {place} (limit 5%)"


def test_a_member_of_several_cpus_is_judged_by_their_mean():
    values = {("cpu2", "user_s"): 1.5, (FROZEN, "cpu_s"): 1.5}
    over = 2 * DESIGN.limits.foreign * SECONDS + FORGIVEN
    everyone = (LEAD, BESIDE, FROZEN)
    assert Case(active=everyone, values=values | {("cpu3", "user_s"): over - A_LITTLE}).reasons() == []
    assert len(Case(active=everyone, values=values | {("cpu3", "user_s"): over + A_LITTLE}).reasons()) == 1


@pytest.mark.parametrize(("cpu", "own"), [(0, 1.5), (3, 0.0)])
def test_the_runners_own_time_is_subtracted_only_where_it_runs(cpu, own):
    values = {(f"cpu{cpu}", "user_s"): own + 0.4 + ALLOWED - A_LITTLE}
    assert Case(values=values, runner_s=0.4, runner_cpus=frozenset({cpu})).reasons() == []
    assert len(Case(values=values, runner_s=0.4, runner_cpus=frozenset({1})).reasons()) == 1
    assert len(Case(values=values, runner_s=0.4, runner_cpus=frozenset({9})).reasons()) == 1
    assert len(Case(values=values, runner_s=0.39, runner_cpus=frozenset({cpu})).reasons()) == 1


@pytest.mark.parametrize(("into", "out", "said"), [(8, 0, []), (4, 4, []), (4, 5, ["9"]), (0, 9, ["9"])])
def test_swapped_pages_are_added_up(into, out, said):
    reasons = Case(values={("host", "pswpin"): into, ("host", "pswpout"): out}).reasons()
    assert reasons == [f"swapping: {pages} pages" for pages in said]


def test_each_missing_sample_alone_rejects_nothing():
    for key in Case().readings():
        assert Case(values={key: None}).reasons() == [], key


def test_without_any_sample_only_what_is_known_is_judged():
    assert Case(samples=False).reasons() == []
    (reason,) = Case(samples=False, thawed={FROZEN}).reasons()
    assert reason == "not frozen: frozen@2,3"


def test_a_missing_part_does_not_hide_the_other_cpus():
    values = {("cpu0", "irq_s"): None, ("cpu0", "user_s"): 2.0, ("cpu3", "user_s"): 2.0, ("cpu1", "steal_s"): None}
    (reason,) = Case(values=values).reasons()
    assert reason == "foreign load: others took 99% of CPU 3 (limit 5%)"


def test_every_reason_is_given():
    case = Case(
        beats={LEAD: 0},
        lost={BESIDE: 1},
        thawed={FROZEN},
        strays={LEAD: {1}},
        values={("cpu0", "steal_s"): 1.0, ("cpu3", "user_s"): 1.0, ("host", "pswpin"): 9.0},
    )
    kinds = [reason.partition(":")[0] for reason in case.reasons()]
    expected = ["too few steps", "lost heartbeats", "not frozen", "off its CPUs", "steal", "foreign load", "swapping"]
    assert kinds == expected


@st.composite
def quiet(draw):
    """A window with any loads below all limits, and any of its samples missing."""
    active = draw(st.sampled_from([(LEAD,), (LEAD, BESIDE), (LEAD, PLACEBO), (BESIDE,), (LEAD, BESIDE, FROZEN)]))
    share = st.floats(0, 1)
    holder = {cpu: name for name in active for cpu in PLACES[name]}
    values: dict[tuple[str, str], float | None] = {(name, "cpu_s"): 0.0 for name in active}
    for cpu in CPUS:
        own = draw(share) * SECONDS if cpu in holder else 0.0
        if cpu in holder:
            values[holder[cpu], "cpu_s"] += own
        busy = own + draw(share) * (DESIGN.limits.foreign * SECONDS - A_LITTLE)
        cut = sorted([draw(share), draw(share)])
        parts = (cut[0], cut[1] - cut[0], 1 - cut[1])
        for metric, part in zip(("user_s", "system_s", "irq_s"), parts, strict=True):
            values[f"cpu{cpu}", metric] = busy * part
        values[f"cpu{cpu}", "steal_s"] = draw(share) * DESIGN.limits.steal * SECONDS
    pages = draw(st.integers(0, DESIGN.limits.swap))
    values["host", "pswpin"] = draw(st.integers(0, pages))
    values["host", "pswpout"] = pages - values["host", "pswpin"]
    missing = draw(st.sets(st.sampled_from(sorted(values))))
    return Case(
        active=active,
        beats={name: draw(st.integers(2 if name == LEAD else 1, 30)) for name in active},
        values=values | dict.fromkeys(missing),
        runner_s=draw(share) * SECONDS,
        runner_cpus=draw(st.frozensets(st.sampled_from(CPUS))),
    )


@given(quiet())
def test_loads_below_every_limit_reject_nothing(case):
    assert case.reasons() == []
