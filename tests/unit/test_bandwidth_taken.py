"""What antagonists took of the memory's bandwidth, beside each effect, and the sentences on the page."""

import math

import pandas as pd
import pytest

from castmates.analysis.effects.effects import estimate_effects
from castmates.report.launch_record import LaunchRecord
from castmates.report.machine_facts import MachineFacts
from castmates.report.results import Results
from castmates.report.text.memory import bandwidth, pages
from castmates.study.memory_peak import Peak
from castmates.study.spec import Plan
from tests.unit.snapshots import assert_as_before
from tests.unit.test_memory_peak import SMALL, record
from tests.unit.windows_maker import cohort, mix, plan, written

MIB = 1 << 20
LEAD, STREAM, CHASE = "dlrm@0", "stream@1", "chase@2"
BIG = record((1, 15), (32, 298), (64, 300))
PEAK = Peak.of(BIG)


def native(one: Plan, commands: dict[str, tuple[str, ...]]) -> Plan:
    """The plan with these commands of ours."""

    def of(each):
        members = tuple(
            member.model_copy(update={"environment": "native", "command": commands[member.workload]})
            if member.workload in commands
            else member
            for member in each.members
        )
        return each.model_copy(update={"members": members})

    launches = tuple(launch.model_copy(update={"cohort": of(launch.cohort)}) for launch in one.launches)
    return one.model_copy(update={"launches": launches})


TWO = plan([cohort("dlrm-1", mix(LEAD, STREAM), mix(LEAD, CHASE), mix(LEAD, STREAM, CHASE))], launches=3)
TRIAD = native(TWO, {"stream": ("stream", "--bytes", "2016M", "--mode", "triad")})


def rates(launch, number, scene, member):
    """In the launches 1, 2 and 3 the stream reads and writes 9, 10 and 11 thousand MiB a second, alone twice that."""
    if member != STREAM:
        return 100.0
    return (8000.0 + 1000 * launch.number) * (2 if scene.startswith("antagonist-alone") else 1)


def effects(of: Plan = TRIAD, peak: Peak | None = PEAK) -> pd.DataFrame:
    table = estimate_effects(of, written(of, rates), 0.02, peak=peak)
    return table[(table["baseline"] == "alone") & (table["role"] == "lead")].set_index("mix")


def test_the_bandwidth_of_the_co_run_is_beside_the_effect_and_its_share_of_the_peak():
    found = effects()
    assert found["antagonists_gb_s"].to_dict() == pytest.approx(
        {"dlrm+stream": 10.48576, "dlrm+chase": math.nan, "dlrm+stream+chase": 10.48576}, nan_ok=True
    )
    assert found.loc["dlrm+stream", "antagonists_peak_pct"] == pytest.approx(100 * 10.48576 / 200)  # of a triad's peak


def test_without_a_peak_or_in_a_mode_that_was_not_tried_there_is_no_share():
    assert math.isnan(effects(peak=None).loc["dlrm+stream", "antagonists_peak_pct"])
    copying = native(TWO, {"stream": ("stream", "--mode", "copy")})
    found = effects(copying).loc["dlrm+stream"]
    assert found["antagonists_gb_s"] == pytest.approx(10.48576)
    assert math.isnan(found["antagonists_peak_pct"])


def test_two_that_stream_are_added_and_a_dial_counts_kib():
    both = native(TWO, {"stream": ("stream", "--mode", "read"), "chase": ("bandwidth", "--rate", "1GB/s")})
    found = effects(both)
    assert found.loc["dlrm+chase", "antagonists_gb_s"] == pytest.approx(100 * 1024 / 1e9)
    assert found.loc["dlrm+stream+chase", "antagonists_gb_s"] == pytest.approx(10.48576 + 100 * 1024 / 1e9)
    assert found.loc["dlrm+stream+chase", "antagonists_peak_pct"] == pytest.approx(100 * 10.48586 / 300, rel=1e-4)


def test_a_program_of_others_with_the_name_of_ours_is_not_counted():
    assert effects(TWO)["antagonists_gb_s"].isna().all()


def shown(table: pd.DataFrame, peak: object) -> str:
    facts = MachineFacts.model_validate({"memory_peak": peak})
    return " ".join(bandwidth(Results(name="x", effects=table.reset_index(), machine=facts)))


def test_what_antagonists_took_of_the_memory_is_told_and_a_peak_that_is_not_the_memorys_is_labelled():
    """What 'equivalent beside memory streaming' was on a machine whose memory was 5 % busy."""
    assert SMALL is not None
    assert_as_before("bandwidth", {
        "of a large peak": shown(effects(), BIG),
        "of all cores that there are": shown(effects(peak=SMALL), record((1, 15), (2, 28))),
        "no peak": shown(effects(peak=None), None),
        "programs of others": shown(effects(TWO), BIG),
    })  # fmt: skip


def launch(huge: int, wanted: str = "huge") -> LaunchRecord:
    member = {"name": "chase@1", "workload": "chase", "role": "antagonist"}
    pages = {"resident": 100 * MIB, "huge": huge * MIB, "wanted": wanted}
    return LaunchRecord({"spec": {"cohort": {"members": [member]}}, "members": {"chase@1": {"pages": pages}}})


def test_pages_that_were_not_given_or_differ_are_named():
    usual = "as the system gives"
    assert_as_before("pages", {
        "given": pages([launch(98), launch(98)]),
        "not asked for": pages([launch(0, "usual")]),
        "asked for and not given": pages([launch(0), launch(0)]),
        "different between launches": pages([launch(0, usual), launch(90, usual)]),
        "no record": pages([LaunchRecord({})]),
    })  # fmt: skip
