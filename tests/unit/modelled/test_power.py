"""A power budget that averages over seconds: short slices smear what it does, long ones show it. All modelled."""

from pathlib import Path

import pytest

from castmates.analysis.effects.effects import estimate_effects
from castmates.analysis.explanations.power import CPU_CLOCK, PACKAGE_POWER
from castmates.analysis.explanations.resources import NEEDED, resources
from castmates.errors import CastmatesError
from castmates.pipeline.measure_launch import measure_launch
from castmates.project import load
from castmates.report.comparison.compare import compare_studies
from castmates.report.comparison.words import sentences
from castmates.report.text.design import in_words, lengths, much_longer
from castmates.results import launch_tables
from castmates.results.find import read_measured
from castmates.results.folder import StudyFolder
from castmates.runner.modelled.power import Packages, slowed
from castmates.runner.modelled.world import Process
from castmates.study.model import Study
from castmates.study.modelled import MachineModel, PowerModel, WorkloadModel
from castmates.study.plan_text import plan_text
from castmates.study.reading import read_keys

STUDIES = {"short": "modelled-power", "long": "modelled-power-long"}
HOME = Path(__file__).parents[3]
POWER = PowerModel(idle=40, core=20, budget=100, memory=3)
# Alone the lead's package draws 60 W; beside six busy cores it is 180 W, of which 60 of 140 are left to the cores.
CLOCK = (60 / 140) ** (1 / 3)
LOSS = 100 * (1 - CLOCK)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The two shipped studies, three launches of two rounds each: their results."""
    here = tmp_path_factory.mktemp("power")
    (here / "config").mkdir()
    for folder in ("config/workloads", "envs"):
        (here / folder).symlink_to(HOME / folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        for name in STUDIES.values():
            text = (HOME / f"config/studies/{name}.yaml").read_text()
            Path(f"{name}.yaml").write_text(
                text.replace("launches: 5", "launches: 3").replace("rounds: 3", "rounds: 2")
            )
            plan, folder = load(f"{name}.yaml").plan(), StudyFolder.of(name)
            folder.path.mkdir(parents=True)
            folder.plan_file.write_text(plan_text(plan))
            for launch in plan.launches:
                measure_launch(plan, launch.path, folder.record_file(launch).parent, here)
        yield {name: read_measured(Path("results") / study) for name, study in STUDIES.items()}


def loss(measured):
    """What the lead loses against alone, in per cent of its rate alone."""
    windows = launch_tables.read(measured.folder.places(measured.plan), "windows")
    effects = estimate_effects(measured.plan, windows, 0.02)
    rows = effects[(effects["role"] == "lead") & (effects["baseline"] == "alone")]
    return rows.iloc[0]


def test_the_average_follows_the_demand_with_its_time_constant():
    packages = Packages(MachineModel(cores=8, power=POWER), POWER)
    model = WorkloadModel(compute=0.02)
    everyone = [Process("lead", model, (0,)), Process("others", model, (1, 2, 3, 4, 5, 6))]
    first = packages.pass_time(everyone, 0.1)[0]
    for _ in range(400):
        last = packages.pass_time(everyone, 0.1)[0]
    assert first == 1.0  # the budget is not used up at once …
    assert last == pytest.approx(CLOCK, rel=1e-3)  # … and then rules
    assert packages.steady(everyone)[0] == pytest.approx(CLOCK)
    assert packages.pass_time(everyone[:1], 0.1)[0] < 0.8  # who is alone now pays for what was drawn before
    assert slowed(50.0, 0.02, CLOCK) == pytest.approx(50 * CLOCK)
    assert slowed(25.0, 0.02, CLOCK) > 25 * CLOCK  # what waits is not slowed


def test_the_truth_is_what_rules_in_the_long_run(both):
    truth = both["long"].records[0]["truth"]
    beside = next(scene for scene in truth if scene.startswith("corun:"))
    lead = next(name for name in truth["alone"])
    assert truth[beside][lead]["rate"] / truth["alone"][lead]["rate"] == pytest.approx(CLOCK)
    assert truth["alone"][lead]["ghz"] == 3.0


def test_long_slices_show_the_loss_and_short_ones_smear_it(both):
    long, short = loss(both["long"]), loss(both["short"])
    assert long["loss_low"] <= LOSS + 1
    assert long["loss_pct"] == pytest.approx(LOSS, abs=1.5)
    assert short["loss_pct"] < LOSS / 2
    assert short["loss_high"] < LOSS  # with an interval that excludes the truth


def test_the_comparison_states_that_short_slices_smear(both):
    (stated,) = [
        line
        for line in sentences(compare_studies([Path("results") / name for name in STUDIES.values()], None).pairs[0])
        if "took turns" in line
    ]
    assert "of 60 s in B" in stated
    assert "The loss depends on it: solver beside burner." in stated


def test_clock_and_power_are_the_evidence(both):
    measured = both["long"]
    places = measured.folder.places(measured.plan)
    windows = launch_tables.read(places, "windows")
    part = {name: launch_tables.read(places, name, columns) for name, columns in NEEDED.items()}
    table = resources(measured.plan, windows, [part])
    lead = measured.plan.mixes[0].lead
    busy = table[(table["scene"] == "placebo") & (table["baseline"] == "alone")].set_index(["member", "metric"])
    assert busy.loc[(lead, CPU_CLOCK), "change"] == pytest.approx(CLOCK, abs=0.03)
    assert busy.loc[("", PACKAGE_POWER), "scope"] == "package 0"
    assert busy.loc[("", PACKAGE_POWER), ["value", "baseline_value"]].tolist() == pytest.approx([100, 60], rel=0.1)
    assert busy.loc[("", PACKAGE_POWER), "role"] == "package"
    corun = table[(table["scene"] == "corun") & (table["metric"] == CPU_CLOCK) & (table["member"] == lead)]
    assert set(corun["baseline"]) == {"alone", "placebo"}


def test_slices_in_words():
    assert in_words(0.06, 0.075) == "60 to 75 ms"
    assert in_words(30.0, 30.0) == "30 s"
    assert much_longer((0.06, 0.075), (30.0, 30.0))
    assert not much_longer((0.06, 0.2), (0.1, 0.3))
    assert not much_longer(None, (30.0, 30.0))
    assert lengths([]) is None


def test_a_budget_below_what_is_drawn_in_any_case_is_refused():
    text = "name: x\nplatform: modelled\nleads: [a]\nantagonists: [b]\nmodel: {power: {idle: 50, budget: 40}}\n"
    with pytest.raises(CastmatesError, match="more watts than 'idle'"):
        read_keys(Study, text, "study.yaml")
