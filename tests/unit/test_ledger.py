"""The ledger: for every reason one slice just inside its limit and one just beyond it."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.protocols import Sample
from castmates.runner.rounds.ledger import Ledger, summary
from castmates.runner.rounds.ledger_load import FORGIVEN, Domain, Surroundings
from castmates.runner.rounds.slices import Slice
from castmates.runner.rounds.window import Window
from castmates.study.budget_keys import Limits
from castmates.study.reasons import Reason, ReasonKind
from castmates.study.spec import UNMANAGED, Design, Member, Scene, Share

SECONDS = 2.0
LEAD, BESIDE, FROZEN, PLACEBO = "lead@0", "beside@1", "frozen@2,3", "placebo:1"
PLACES = {LEAD: (0,), BESIDE: (1,), FROZEN: (2, 3), PLACEBO: (1,)}
CPUS = (0, 1, 2, 3)
SIBLING = 10  # of a CPU of the launch, nobody's
AROUND = Domain("l3:0", 8, (4, 5, 6))
LIMITS = Limits(steal=0.03, foreign=0.05, neighbours=0.1, swap=8, neighbour_cpus=8)
LENGTHS = {"window": SECONDS, "longest_window": 5.0, "settle": 0.0, "longest_settle": 0.0}
DESIGN = Design(rounds=1, spare_rounds=0, steps=10, limits=LIMITS, **LENGTHS)
A_LITTLE = 1e-6
EVICTORS_CPU = 9  # nobody measured runs there


def member(name: str) -> Member:
    usual = {"command": ("program",), "environment": None, "environment_key": None, "content": "c", "variables": {}}
    usual |= {"progress": "heartbeat", "unit": "step", "nodes": (), "ready_within": 1.0}
    role = "lead" if name == LEAD else "antagonist"
    return Member(name=name, workload=name.partition("@")[0], role=role, cpus=PLACES[name], **usual)


OPEN_NS = 1_000_000_000
MEMBERS = {name: member(name) for name in (LEAD, BESIDE, FROZEN)}


def records(count: int) -> list[tuple[int, int]]:
    """Evenly over the slice."""
    return [(OPEN_NS + int(SECONDS * 1e9 * (step + 0.5) / count), step) for step in range(count)]


@dataclass
class Case:
    """A clean watched slice of the lead beside one antagonist, to be spoilt by a test."""

    active: tuple[str, ...] = (LEAD, BESIDE)
    beats: dict[str, int] = field(default_factory=dict)
    steps: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # instead of evenly spread ones
    ended: tuple[str, ...] = ()
    lost: dict[str, int] = field(default_factory=dict)
    crept: dict[str, int] = field(default_factory=dict)  # steps of the frozen
    unfrozen: tuple[str, ...] = ()
    watched: bool = True
    slow: frozenset[str] = frozenset()
    strays: dict[str, set[int]] = field(default_factory=dict)
    values: dict[tuple[str, str], float | None] = field(default_factory=dict)
    runner_s: float = 0.0
    runner_cpus: frozenset[int] = frozenset()
    samples: bool = True  # False: this machine gives none at all
    last: dict[str, set[int]] = field(default_factory=dict)  # where threads ran last
    notes: dict[tuple[str, str], str] = field(default_factory=dict)
    evictors: dict[str, int] = field(default_factory=dict)
    takers: tuple[tuple[str, float, str], ...] = ()  # place, seconds, who
    shares: tuple[Share, ...] = ()  # of its scene

    def readings(self) -> dict[tuple[str, str], float | None]:
        clean: dict[tuple[str, str], float | None] = {("host", "pswpin"): 0.0, ("host", "pswpout"): 0.0}
        clean |= {("host", metric): 0.0 for metric in ("settings_changed", "cpus_offline", "slept_s")}
        clean |= {("runner", "cpu_s"): self.runner_s, (AROUND.name, "neighbours_busy_s"): 0.0}
        for cpu in (*CPUS, SIBLING):
            clean |= {(f"cpu{cpu}", metric): 0.0 for metric in ("user_s", "system_s", "irq_s", "steal_s")}
        for name in self.active:
            clean[name, "cpu_s"] = 1.5
            clean[f"cpu{PLACES[name][0]}", "user_s"] = 1.5
        return clean | self.values if self.samples else {}

    def collected(self) -> list[Sample]:
        found = [Sample(0, "any", *key, value, self.notes.get(key, "")) for key, value in self.readings().items()]
        last = PLACES | self.last if self.samples else {}
        found += [Sample(0, "places", name, "last_cpu", float(cpu)) for name, cpus in last.items() for cpu in cpus]
        return found + [Sample(0, "culprits", place, "foreign_s", seconds, who) for place, seconds, who in self.takers]

    def ledger(self) -> Ledger:
        cast = {
            name: SimpleNamespace(start=SimpleNamespace(cpus=cpus))
            for name, cpus in (PLACES | dict.fromkeys(self.evictors, (EVICTORS_CPU,))).items()
        }
        surroundings = Surroundings((SIBLING,), (AROUND,))
        stage = SimpleNamespace(
            cast=cast, evictors=self.evictors, hardware=SimpleNamespace(surroundings=surroundings)
        )  # fmt: skip
        return Ledger(stage, MEMBERS, DESIGN, self.runner_cpus)  # type: ignore[arg-type]

    def slice(self) -> Slice:
        scene = Scene(
            name="s", kind="corun", mix="m", active=self.active, placebos=(), partition=UNMANAGED, shares=self.shares
        )
        return Slice(
            scene,
            open_ns=OPEN_NS,
            close_ns=OPEN_NS + int(SECONDS * 1e9),
            switch_ns=OPEN_NS,
            since_switch={name: self.steps.get(name, records(self.beats.get(name, 20))) for name in self.active},
            lost=self.lost,
            samples=self.collected(),
            crept=self.crept,
            unfrozen=self.unfrozen,
            allowed={name: self.strays.get(name, set(PLACES[name])) for name in self.active} if self.watched else {},
            ended=self.ended,
            watched=self.watched,
        )

    def reasons(self) -> list[str]:
        return [str(reason) for reason in self._found()]

    def kinds(self) -> list[str]:
        return [reason.kind for reason in self._found()]

    def _found(self) -> list[Reason]:
        each, ledger = self.slice(), self.ledger()
        return [*ledger.judge(each, self.slow), *(ledger.proofs(each) if self.watched else [])]


NO_STEP = "too few steps: lead@0 completed none in 2.00 s (raise budget.slice, or budget.longest_window)"
OTHERS = "foreign load: others took 49% of CPU 3 (limit 5%)"
ALL = (LEAD, BESIDE, FROZEN)
NOBODYS = {
    ("cpu4", metric): seconds for metric, seconds in (("steal_s", 2), ("user_s", 2), ("system_s", 0), ("irq_s", 0))
}
EVICTING = {(f"cpu{EVICTORS_CPU}", metric): 0.5 * SECONDS for metric in ("user_s", "steal_s")}
TWO = {("cpu2", "user_s"): 1.5, ("cpu3", "user_s"): 1.0, (FROZEN, "cpu_s"): 1.5}
MAKE, MORE = ("cpu3", 0.3, "make (pid 7)"), (("cpu2", 0.3, "make (pid 7)"), ("cpu3", 0.4, "ld (pid 8)"))
UNSEEN = {("cpu0", "irq_s"): None, ("cpu0", "user_s"): 2.0, ("cpu3", "user_s"): 2.0, ("cpu1", "steal_s"): None}
NEIGHBOURS = ("l3:0", "neighbours_busy_s")
AROUND_ALLOWED = DESIGN.limits.neighbours * AROUND.size * SECONDS
MASKS = (BESIDE, "schemata_changed")


@pytest.mark.parametrize(
    ("spoilt", "reasons"),
    [
        ({}, []),
        ({"active": (LEAD, PLACEBO)}, []),
        ({"beats": {LEAD: 0}}, [NO_STEP]),
        ({"beats": {LEAD: 1}}, [NO_STEP]),
        *(({"beats": {LEAD: count}}, []) for count in range(2, 10)),
        ({"steps": {BESIDE: [(OPEN_NS + int(0.1 * SECONDS * 1e9), 1)]}}, []),  # few long steps are no silence
        ({"lost": {BESIDE: 0}}, []),
        ({"lost": {BESIDE: 1}}, ["lost heartbeats: 1 of beside@1 were overwritten before they were read"]),
        (
            {"lost": {LEAD: 1}, "beats": {LEAD: 0}},
            ["lost heartbeats: 1 of lead@0 were overwritten before they were read"],
        ),
        ({"ended": (BESIDE,)}, ["no progress: beside@1 reports that it is at its end"]),
        ({"ended": (BESIDE,), "watched": False}, ["no progress: beside@1 reports that it is at its end"]),
        ({"crept": {FROZEN: 1}}, ["not frozen: frozen@2,3 made 1 steps"]),
        ({"crept": {FROZEN: 1}, "watched": False}, ["not frozen: frozen@2,3 made 1 steps"]),
        ({"unfrozen": (FROZEN,)}, ["not frozen: frozen@2,3"]),
        ({"unfrozen": (FROZEN,), "crept": {FROZEN: 2}}, ["not frozen: frozen@2,3 made 2 steps"]),
        ({"unfrozen": (PLACEBO,)}, ["not frozen: placebo:1"]),
        ({"samples": False}, []),
        ({"samples": False, "unfrozen": (FROZEN,)}, ["not frozen: frozen@2,3"]),
        ({"strays": {LEAD: set()}}, []),
        ({"strays": {LEAD: {0, 3, 1}}}, ["off its CPUs: a thread of lead@0 may run on 1, 3"]),
        ({"strays": {FROZEN: {0}}}, []),  # a frozen one runs nowhere
        ({"active": ALL, "strays": {FROZEN: {2}}}, []),  # one of its CPUs is enough
        ({"last": {LEAD: {0, 2}}}, ["off its CPUs: a thread of lead@0 ran on 2"]),
        ({"last": {FROZEN: {2, 0, 1}}}, ["off its CPUs: a thread of frozen@2,3 ran on 0, 1"]),  # frozen ones too
        ({"last": {FROZEN: {3}, BESIDE: set()}}, []),
        ({"last": {LEAD: {2}}, "strays": {LEAD: {0, 2}}}, ["off its CPUs: a thread of lead@0 may run on 2"]),  # once
        ({"active": ALL, "values": {(FROZEN, "cpu_migrations"): 40.0}}, []),
        ({"values": {(LEAD, "cpu_migrations"): 0.0}}, []),
        (
            {"values": {(LEAD, "cpu_migrations"): 2}},
            ["off its CPUs: threads of lead@0 left its only CPU (2 migrations)"],
        ),
        ({"values": NOBODYS}, []),
        ({"values": EVICTING, "evictors": {"evictor:9": 1}}, []),
        ({"values": {("host", "pswpin"): 8, ("host", "pswpout"): 0}}, []),
        ({"values": {("host", "pswpin"): 4, ("host", "pswpout"): 4}}, []),
        ({"values": {("host", "pswpin"): 4, ("host", "pswpout"): 5}}, ["swapping: 9 pages"]),
        ({"values": {("host", "pswpin"): 0, ("host", "pswpout"): 9}}, ["swapping: 9 pages"]),
        ({"values": {("host", "slept_s"): 3.21}}, ["the machine slept: for 3.2 s of this window"]),
        ({"values": {MASKS: 1.0}, "notes": {MASKS: "'f' was '3'"}}, ["masks changed: of beside@1, 'f' was '3'"]),
        ({"values": {NEIGHBOURS: AROUND_ALLOWED - A_LITTLE}}, []),
        (
            {"values": {NEIGHBOURS: 4.0}, "takers": (("l3:0", 3.0, "make (pid 7)"),)},
            ["neighbours: others took 25% of the CPU time around cache l3:0 (limit 10%), mostly make (pid 7)"],
        ),
        (
            {"takers": (("cpu0", 2.0, "make (pid 7)"), ("l3:0", 9.0, "make (pid 7)"))},
            [],
        ),  # naming somebody is no reason
        ({"values": {("cpu3", "user_s"): 1.0}}, [f"{OTHERS}, by a process that is not visible here"]),
        (
            {"values": {("cpu3", "user_s"): 1.0}, "takers": (("cpu2", 0.9, "elsewhere (pid 1)"),)},
            [f"{OTHERS}, by a process that is not visible here"],
        ),
        (
            {"values": {("cpu3", "user_s"): 1.0}, "takers": (("cpu3", 0.6, "snakemake (pid 123)"), MAKE)},
            [f"{OTHERS}, mostly snakemake (pid 123)"],
        ),
        (
            {"values": {("cpu3", "user_s"): 1.0}, "takers": (("cpu3", 0.4, "snakemake (pid 123)"), MAKE)},
            [f"{OTHERS}, among them snakemake (pid 123)"],
        ),
        (
            {"active": ALL, "values": TWO, "takers": (*MORE, MAKE)},  # a culprit on several CPUs is added up
            ["foreign load: others took 24% of CPUs 2-3 (limit 5%), mostly make (pid 7)"],
        ),
        (
            {"values": UNSEEN},  # a missing part does not hide the other CPUs
            ["foreign load: others took 99% of CPU 3 (limit 5%), by a process that is not visible here"],
        ),
    ],
)
def test_what_spoils_a_slice_and_what_does_not(spoilt, reasons):
    assert Case(**spoilt).reasons() == reasons


@pytest.mark.parametrize(("metric", "reason"), [("settings_changed", "governor changed"), ("cpus_offline", "offline")])
def test_the_machine_must_be_as_it_was(metric, reason):
    notes = {("host", metric): "CPU 3 was 0 and is 1"}
    assert Case(values={("host", metric): 2.0}, notes=notes).reasons() == [f"{reason}: CPU 3 was 0 and is 1"]
    assert Case(values={("host", metric): 0.0}).reasons() == []


def test_a_member_of_several_cpus_is_judged_by_their_mean():
    over = 2 * DESIGN.limits.foreign * SECONDS + FORGIVEN
    for user_s, count in ((over - A_LITTLE, 0), (over + A_LITTLE, 1)):
        assert len(Case(active=ALL, values=TWO | {("cpu3", "user_s"): user_s}).reasons()) == count


def test_the_runner_is_no_neighbour_where_it_runs():
    values = {NEIGHBOURS: AROUND_ALLOWED + 0.4 - A_LITTLE}
    for cpu, count in ((5, 0), (0, 1)):
        assert len(Case(values=values, runner_s=0.4, runner_cpus=frozenset({cpu})).reasons()) == count


@pytest.mark.parametrize(
    ("name", "progress", "beats", "cpu_s", "expected"),
    [
        (BESIDE, "heartbeat", 1, 0.0, []),
        (BESIDE, "heartbeat", 0, SECONDS, ["no progress"]),  # busy, but with what?
        (PLACEBO, "", 1, 0.0, []),
        (PLACEBO, "", 0, SECONDS, ["no progress"]),
        (BESIDE, "runs", 0, 0.01 * SECONDS, []),  # a long run of a command: no heartbeat, but work
        (BESIDE, "runs", 0, 0.01 * SECONDS - A_LITTLE, ["no progress"]),
        (BESIDE, "runs", 0, 0.0, ["no progress"]),
    ],
)
def test_who_runs_must_show_progress(monkeypatch, name, progress, beats, cpu_s, expected):
    if progress:
        monkeypatch.setitem(MEMBERS, name, MEMBERS[name].model_copy(update={"progress": progress}))
    case = Case(active=(LEAD, name), beats={name: beats}, values={(name, "cpu_s"): cpu_s, ("cpu1", "user_s"): cpu_s})
    assert case.kinds() == expected
    assert all(name in reason for reason in case.reasons())


@pytest.mark.parametrize("cpu", CPUS)  # the lead runs on 0, an antagonist on 1, nobody on 2 and 3
def test_stolen_time_counts_on_every_cpu_of_the_launch(cpu):
    limit = DESIGN.limits.steal * SECONDS
    assert Case(values={(f"cpu{cpu}", "steal_s"): limit}).reasons() == []
    (reason,) = Case(values={(f"cpu{cpu}", "steal_s"): limit + 0.01}).reasons()
    assert reason == f"steal: the hypervisor took 3.5% of CPU {cpu} (limit 3.0%)"


ALLOWED = DESIGN.limits.foreign * SECONDS + FORGIVEN


@pytest.mark.parametrize("metric", ["user_s", "system_s", "irq_s"])
@pytest.mark.parametrize(("cpu", "own"), [(0, 1.5), (1, 1.5), (3, 0.0), (SIBLING, 0.0)])
def test_others_time_beside_a_member_and_on_a_quiet_cpu(metric, cpu, own):
    before = own if metric == "user_s" else 0.0
    assert Case(values={(f"cpu{cpu}", metric): before + ALLOWED - A_LITTLE}).reasons() == []
    (reason,) = Case(values={(f"cpu{cpu}", metric): before + ALLOWED + A_LITTLE}).reasons()
    by = "mostly interrupts" if metric == "irq_s" else "by a process that is not visible here"
    assert reason == f"foreign load: others took 5% of CPU {cpu} (limit 5%), {by}"


@pytest.mark.parametrize(("cpu", "own"), [(0, 1.5), (3, 0.0)])
def test_the_runners_own_time_is_subtracted_only_where_it_runs(cpu, own):
    values = {(f"cpu{cpu}", "user_s"): own + 0.4 + ALLOWED - A_LITTLE}
    assert Case(values=values, runner_s=0.4, runner_cpus=frozenset({cpu})).reasons() == []
    assert len(Case(values=values, runner_s=0.4, runner_cpus=frozenset({1})).reasons()) == 1
    assert len(Case(values=values, runner_s=0.4, runner_cpus=frozenset({9})).reasons()) == 1
    assert len(Case(values=values, runner_s=0.39, runner_cpus=frozenset({cpu})).reasons()) == 1


def test_the_summary_counts_a_window_and_a_slice_once_for_each_kind_of_reason():
    def window(kind: str, *reasons: Reason, of_slices: tuple[tuple[Reason, ...], ...] = ((),)) -> Window:
        scene = Scene(name="s", kind=kind, mix="", active=(LEAD,), placebos=(), partition=UNMANAGED)  # type: ignore[arg-type]
        slices = [Slice(scene, 0, 1, reasons=list(own)) for own in of_slices]
        made = Window(scene, slices, reasons=list(reasons))
        made.watched = slices[-1]
        return made

    steal, more = Reason(ReasonKind.STEAL, "of CPU 0"), Reason(ReasonKind.STEAL, "of CPU 1")
    spoilt = window("corun", steal, Reason(ReasonKind.SWAPPING, "9 pages"), of_slices=((steal, more), (), ()))
    spoilt.slices[1].dropped = True
    spoilt.watched = Slice(spoilt.scene, 0, 1, watched=True)  # a fourth one, longer than the others
    found = summary([
        window("alone", of_slices=((), ())),
        window("alone", steal, more, of_slices=((steal,),)),
        spoilt,
    ])  # fmt: skip
    assert found == {
        "windows": {"alone": 2, "corun": 1},
        "rejected": {"alone": 1, "corun": 1},
        "because": {"steal": {"alone": 1, "corun": 1}, "swapping": {"corun": 1}},
        "slices": {"alone": 3, "corun": 4},
        "slices_rejected": {"alone": 1, "corun": 1},
        "slices_dropped": {"corun": 1},
        "slices_because": {"steal": {"alone": 1, "corun": 1}},
        "stretches": 1,
        "stretches_rejected": 0,
        "stretches_because": {},
    }
    assert not any(summary([]).values())


def test_a_missing_sample_alone_rejects_nothing_unless_a_proof_is_missing():
    for subject, metric in Case().readings():
        kinds = Case(values={(subject, metric): None}).kinds()
        assert kinds == (["unproven"] if metric == "cpu_s" and subject in PLACES else []), (subject, metric)


@pytest.mark.parametrize("name", [LEAD, BESIDE])
@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [(0.0, 0.45, ["no progress"]), (0.55, 1.0, ["no progress"]), (0.0, 0.55, []), (0.45, 1.0, []), (0.0, 1.0, [])],
)
def test_a_member_that_stalls_for_half_a_slice_spoils_it(name, begin, end, expected):
    times = [OPEN_NS + int(SECONDS * 1e9 * (begin + (end - begin) * step / 99)) for step in range(100)]
    case = Case(steps={name: [(t_ns, step) for step, t_ns in enumerate(times)]})
    assert case.kinds() == expected


@pytest.mark.parametrize(("silent", "expected"), [(0.52, []), (0.62, ["no progress"])])
def test_a_gap_is_held_against_the_usual_step_before_it_is_a_silence(silent, expected):
    """Five gaps, the longest of them half the slice: a silence where it is more than five usual steps."""
    step = (1 - silent) / 4
    times = [step, 2 * step, 2 * step + silent, 3 * step + silent]
    case = Case(steps={BESIDE: [(OPEN_NS + int(SECONDS * 1e9 * t), number) for number, t in enumerate(times)]})
    assert case.kinds() == expected


def test_of_slow_members_a_usual_slice_proves_nothing_and_a_watched_one_does():
    silent = {"beats": {BESIDE: 0}, "values": {(BESIDE, "cpu_s"): 0.0, ("cpu1", "user_s"): 0.0}}
    (reason,) = Case(**silent, watched=False).reasons()
    assert reason.startswith(f"no progress: {BESIDE} made none")
    assert Case(**silent, watched=False, slow=frozenset({BESIDE})).reasons() == []
    assert Case(**silent, slow=frozenset({BESIDE})).reasons() == [reason]


def test_every_reason_is_given():
    values = {("cpu0", "steal_s"): 1.0, ("cpu3", "user_s"): 1.0, NEIGHBOURS: 9.0, ("host", "pswpin"): 9.0}
    values |= {("host", name): 1.0 for name in ("settings_changed", "cpus_offline", "slept_s", "misplaced")}
    values |= {(LEAD, "schemata_changed"): 1.0, ("host", "foreign_traffic"): 9e9}
    case = Case(beats={LEAD: 0}, lost={BESIDE: 1}, unfrozen=(FROZEN,), strays={LEAD: {1}}, values=values)
    assert case.kinds() == [
        *("too few steps", "lost heartbeats", "steal", "foreign load", "neighbours"),
        *("not frozen", "off its CPUs", "masks changed", "out of its group"),
        *("swapping", "foreign traffic", "governor changed", "offline", "the machine slept"),
    ]


def test_the_documentation_lists_every_kind_of_reason_and_every_limit():
    text = (Path(__file__).resolve().parents[2] / "docs/ledger.md").read_text()
    assert not [kind for kind in ReasonKind if f"| `{kind}` |" not in text]
    assert not [key for key in Limits.model_fields if f"| `{key}` " not in text]


@st.composite
def quiet(draw):
    """A window with any loads below all limits, and any of its samples missing but the members' own time."""
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
    effects = ("major_faults", "voluntary_switches", "involuntary_switches", "threads_moved")
    values |= {(name, metric): float(draw(st.integers(0, 10**6))) for name in active for metric in effects}
    values |= {(f"cpu{cpu}", "core_throttles"): float(draw(st.integers(0, 9))) for cpu in CPUS}
    values |= {(f"cpu{cpu}", "frequency_mhz"): draw(st.floats(400, 6000)) for cpu in CPUS}
    values["host", "coolers"] = float(draw(st.integers(0, 3)))
    values["l3:0", "neighbours_busy_s"] = draw(share) * DESIGN.limits.neighbours * AROUND.size * SECONDS
    values["host", "pswpin"] = draw(st.integers(0, pages))
    values["host", "pswpout"] = pages - values["host", "pswpin"]
    missing = draw(st.sets(st.sampled_from(sorted(key for key in values if key[1] != "cpu_s"))))
    return Case(
        active=active,
        beats={name: draw(st.integers(2 if name == LEAD else 1, 30)) for name in active},
        values=values | dict.fromkeys(missing),
        runner_s=draw(share) * SECONDS,
        runner_cpus=draw(st.frozensets(st.sampled_from(CPUS))),
    )


@given(quiet())
def test_effects_and_loads_below_every_limit_reject_nothing(case):
    assert case.reasons() == []


def test_who_has_used_up_its_quota_may_be_silent_until_the_next_period():
    early = [(t_ns, step) for t_ns, step in records(40) if t_ns < OPEN_NS + int(0.4e9)]
    quota = Share(member=BESIDE, quota=20, period=1000)
    values = {(BESIDE, "cpu_s"): 0.4, ("cpu1", "user_s"): 0.4}
    assert Case(steps={BESIDE: early}, values=values).kinds() == ["no progress"]
    assert Case(steps={BESIDE: early}, values=values, shares=(quota,)).reasons() == []
    short = quota.model_copy(update={"period": 100})
    assert Case(steps={BESIDE: early}, values=values, shares=(short,)).kinds() == ["no progress"]


def test_a_quota_must_be_the_one_that_was_given_and_must_hold():
    half = (Share(member=BESIDE, quota=50, period=10),)
    inside = {(BESIDE, "cpu_s"): 1.0, ("cpu1", "user_s"): 1.0}
    assert Case(shares=half, values=inside).reasons() == []
    changed = inside | {(BESIDE, "cpu_quota_changed"): 1.0}
    note = {(BESIDE, "cpu_quota_changed"): "'5000 10000' was 'none'"}
    assert Case(shares=half, values=changed, notes=note).reasons() == [
        "quota changed: that of beside@1, '5000 10000' was 'none'"
    ]
    assert Case(shares=half).reasons() == ["quota exceeded: beside@1 took 1.500 s of CPU time, 1.030 s at most"]


def test_the_time_of_members_on_the_same_cpu_is_not_taken_for_others(monkeypatch):
    monkeypatch.setitem(PLACES, BESIDE, PLACES[LEAD])
    monkeypatch.setitem(MEMBERS, BESIDE, member(BESIDE))
    shared = {(LEAD, "cpu_s"): 1.0, (BESIDE, "cpu_s"): 0.95, ("cpu0", "user_s"): 1.95}
    assert Case(values=shared).reasons() == []
    (reason,) = Case(values=shared | {(BESIDE, "cpu_s"): 0.45}).reasons()
    assert reason.startswith("foreign load: others took 24% of CPU 0")
