"""The modelled machine as an oracle: 4000 studies whose truth is known, through the estimators that print the tables.

What scatters is what the modelled machine lets scatter: launches, what a launch does to each scene, windows, and the
machine's walk. Every row of a plan is looked at: against alone and placebo, and those of a partition.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from castmates.analysis.effects.effects import estimate_effects
from castmates.results.columns.launch import WINDOWS
from castmates.runner.modelled import launch as casting
from castmates.runner.modelled.hardware import grant_of
from castmates.runner.modelled.launch import truth
from castmates.runner.modelled.world import NANO, World
from castmates.runner.processes.starts import placebo_member
from castmates.study.modelled import Noise
from castmates.study.spec import Cohort
from tests.unit.modelled.makers import STUDY, SWEEPS, project_of
from tests.unit.windows_maker import one_slice

STUDIES, TOGETHER = 4000, 500  # studies in all, and in one table
SEED = 20261121
SECONDS = 0.5  # from window to window, for the machine's walk
CONFIDENCE = 0.95


def share_expected():
    """The interval of a share of STUDIES intervals, each of which holds the truth with 95 %."""
    low, high = stats.binom.interval(0.999, STUDIES, CONFIDENCE)
    return low / STUDIES, high / STUDIES


def renamed(cohort, number):
    """The same cohort as another study's: other names of mixes and of the lead, so that no row is pooled."""
    text = cohort.canonical().replace("ranking", f"ranking{number:04d}")
    for mix in cohort.mixes:
        text = text.replace(mix.identity, f"{number:04d}{mix.identity}")
    return Cohort.model_validate_json(text).model_copy(update={"id": f"c{number:04d}"})


def truths(plan):
    """By scene and member, the rate without noise."""
    launch = plan.launches[0]
    world = World(launch.design.model, casting.processes(launch.cohort, ()), launch.seed)
    return {
        scene.name: {name: one["rate"] for name, one in truth(world, scene).items()} for scene in launch.cohort.scenes
    }


def log_rates(true, cohort, noise, rng, studies, launches, rounds):
    """By study, launch, round, scene and member (NaN where it does not run)."""
    scenes, members = cohort.scenes, [one.name for one in cohort.members]
    shape = (studies, launches, rounds, len(scenes), len(members))
    found = np.array([[np.log(true[s.name][m]) if m in s.active else np.nan for m in members] for s in scenes])
    launch = rng.normal(0, noise.launch, (studies, launches, 1, 1, len(members)))
    # The second `alone` scene is the same scene, so that a launch does the same to it.
    places = [next(i for i, s in enumerate(scenes) if same(s, scene)) for scene in scenes]
    moved = rng.normal(0, noise.scene, (studies, launches, 1, len(scenes), len(members)))[:, :, :, places]
    length = launches * rounds * len(scenes)
    walk = rng.normal(0, noise.drift * np.sqrt(SECONDS / 60), (studies, length)).cumsum(axis=1)
    order = rng.random(shape[:-1]).argsort(axis=3).argsort(axis=3)
    drift = np.take_along_axis(walk.reshape(shape[:-1]), order, axis=3)[..., None]
    return found + launch + moved + drift + rng.normal(0, noise.window, shape)


def same(one, other):
    return (one.active, one.placebos, one.shares) == (other.active, other.placebos, other.shares)


def table(cohorts, logs):
    """The windows of these studies."""
    scenes = cohorts[0].scenes
    where = np.argwhere(~np.isnan(logs))
    study, launch, number, scene, member = where.T
    names = np.array([[s.name for s in c.scenes] for c in cohorts], dtype=object)
    own = np.array([[one.name for one in c.members] for c in cohorts], dtype=object)
    frame = pd.DataFrame(
        {
            "study": "example",
            "cohort": np.array([c.id for c in cohorts], dtype=object)[study],
            "launch": launch + 1,
            "round": number + 1,
            "position": scene + 1,
            "window": number * len(scenes) + scene + 1,
            "scene": names[study, scene],
            "kind": np.array([s.kind for s in scenes], dtype=object)[scene],
            "mix": "",
            "partition": np.array([s.partition for s in scenes], dtype=object)[scene],
            "member": own[study, member],
            "workload": "",
            "role": "",
            "unit": "step",
            "open_ns": 0,
            "close_ns": 10**9,
            "first_ns": pd.NA,
            "last_ns": pd.NA,
            "beats": 10,
            "units": 10.0,
            "rate": np.exp(logs[~np.isnan(logs)]),
            "valid": True,
            "reasons": "",
            "reason_kinds": "",
            "platform": "modelled",
        }
        | one_slice(True)
    )
    for column in set(WINDOWS) - set(frame):
        frame[column] = {"str": "", "float64": np.nan}.get(WINDOWS[column], pd.NA)
    return frame[list(WINDOWS)].astype(dict(WINDOWS))


def studied(plan):
    """The rows of STUDIES studies like this one, with the truth beside each."""
    launch, launches = plan.launches[0], len(plan.launches)
    cohort, design = launch.cohort, launch.design
    true, rng = truths(plan), np.random.default_rng(SEED)
    found = []
    for begin in range(0, STUDIES, TOGETHER):
        cohorts = [renamed(cohort, number) for number in range(begin, begin + TOGETHER)]
        logs = log_rates(true, cohort, design.model.noise, rng, TOGETHER, launches, design.rounds)
        mixes = tuple(mix for one in cohorts for mix in one.mixes)
        numbered = tuple(each.model_copy(update={"cohort": one}) for one in cohorts for each in plan.launches)
        everything = plan.model_copy(update={"mixes": mixes, "launches": numbered})
        found.append(estimate_effects(everything, table(cohorts, logs), margin=0.02))
    rows = pd.concat(found, ignore_index=True)
    rows["mix"] = rows["mix"].str.replace(r"ranking\d+", "ranking", regex=True)
    rows["member"] = rows["member"].str.replace(r"ranking\d+", "ranking", regex=True)
    return rows, true


def baselines_of(scenes, row):
    """The scene and the baseline scene that a row of effects compares, named by what each is."""
    mix, partition, baseline, member = row
    own = [s for s in scenes if s.partition == partition and member in s.active and s.kind in ("corun", "alone")]
    scene = next(s for s in own if s.mix == mix or (s.kind == "alone" and partition != "unmanaged"))
    wanted = {
        "alone": lambda s: s.name in ("alone", f"antagonist-alone:{member}") and member in s.active,
        "placebo": lambda s: s.kind == "placebo" and s.partition == "unmanaged",
        "placebo@mask": lambda s: s.kind == "placebo" and s.partition == partition,
        "unmanaged": lambda s: s.kind == "corun" and s.partition == "unmanaged",
    }
    return scene.name, next(s.name for s in scenes if wanted[baseline](s))


def world_logs(launch, noise, rng, studies, rounds):
    """As `log_rates` does for one launch of each study, but by the modelled machine itself; its rates are one."""
    cohort, machine = launch.cohort, launch.design.model.model_copy(update={"noise": noise})
    scenes, members = cohort.scenes, [one.name for one in cohort.members]
    processes = casting.processes(cohort, ())
    settled = World(machine, processes, seed=0)
    actors = []
    for scene in scenes:
        given = {one.member: one for one in scene.shares if one.member in settled.processes}
        grants = {name: grant_of(one, settled.processes[name].cpus, machine) for name, one in given.items()}
        names = [*scene.active, *map(placebo_member, scene.placebos)]
        actors.append(settled.balance_of(names, {name: grants[name] for name in names if name in grants}).actors)
    found = np.full((studies, 1, rounds, len(scenes), len(members)), np.nan)
    for study in range(studies):
        world = World(machine, processes, seed=study)
        for number in range(rounds):
            for place in rng.permutation(len(scenes)):
                world.let_run([one.name for one in actors[place]])
                for name in scenes[place].active:
                    found[study, 0, number, place, members.index(name)] = np.log(world._luck(name, actors[place]))
                world.now_ns += int(SECONDS * NANO)
    return found


def contrasts(cohort, logs):
    """What the noise does to differences of windows in which any part of it would show, were it another's."""
    at = {(s.kind, s.partition): place for place, s in enumerate(cohort.scenes)}
    rates = logs[:, 0]  # study, round, scene, member; the lead first
    alone, corun = rates[:, :, at["alone", "unmanaged"]], rates[:, :, at["corun", "unmanaged"]]
    return {
        "rounds": corun[:, 0, 0] - corun[:, 1, 0],
        "members": corun[:, 0, 0] - corun[:, 0, 1],
        "scenes": corun[:, 0, 0] - alone[:, 0, 0],
        "twins": rates[:, 0, at["alone-again", "unmanaged"], 0] - alone[:, 0, 0],
        "partitions": rates[:, 0, at["corun", "split-6"], 0] - corun[:, 0, 0],
    }


@pytest.mark.parametrize("part", ["window", "scene", "launch", "drift"])
def test_the_noise_here_is_the_modelled_machine_s(tmp_path, monkeypatch, part):
    monkeypatch.chdir(tmp_path)
    launch = project_of(tmp_path, STUDY + SWEEPS).plan().launches[0]
    # What wanders there is forgotten from window to window, as here.
    noise = Noise(**{"window": 0.0, "scene": 0.0, "launch": 0.0, "drift": 0.0, part: 0.01}, memory=SECONDS / 100)
    ones = {scene.name: dict.fromkeys(scene.active, 1.0) for scene in launch.cohort.scenes}
    rng = np.random.default_rng(SEED)
    here = contrasts(launch.cohort, log_rates(ones, launch.cohort, noise, rng, 4000, 1, 2))
    there = contrasts(launch.cohort, world_logs(launch, noise, rng, 500, 2))
    for name, logs in there.items():
        assert logs.std() == pytest.approx(here[name].std(), rel=0.15, abs=1e-9), name


@pytest.mark.simulation
def test_intervals_hold_the_truth_as_often_as_they_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = project_of(tmp_path, STUDY + SWEEPS).plan()
    scenes = plan.launches[0].cohort.scenes
    rows, true = studied(plan)
    low, high = share_expected()
    seen = {}
    for key, own in rows.groupby(["mix", "partition", "baseline", "member"]):
        scene, baseline = baselines_of(scenes, key)
        slowdown = true[baseline][key[3]] / true[scene][key[3]]
        assert len(own) == STUDIES
        assert own["slowdown"].mean() == pytest.approx(slowdown, rel=0.01)
        seen[key] = float(((own["slowdown_low"] <= slowdown) & (slowdown <= own["slowdown_high"])).mean())
    assert {key[2] for key in seen} >= {"alone", "placebo", "placebo@mask", "unmanaged"}
    wrong = {key: share for key, share in seen.items() if not low <= share <= high}
    assert not wrong, f"expected between {low:.4f} and {high:.4f}"
