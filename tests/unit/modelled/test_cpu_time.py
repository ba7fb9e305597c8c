"""CPU time on the modelled machine: quotas, overcommitted CPUs, busy siblings, sockets with one memory."""

import pytest

from castmates.runner.modelled.balance import Actor, Grant, balance, cpu_time
from castmates.study.modelled import MachineModel, WorkloadModel, layout_of
from tests.unit.modelled.makers import QUIET, STUDY, project_of
from tests.unit.modelled.test_balance import LEAD, MACHINE, SPIN, STREAM

SERVER = MachineModel(sockets=2, domains=4, cores=4, threads=2, sibling=0.4, turbo=0.0)


def rates(machine, *actors):
    made = [
        Actor.on(machine, f"{number}", model, cpus, Grant((machine.full,) * machine.domains, quota=quota))
        for number, (model, cpus, quota) in enumerate(actors)
    ]
    return balance(made, machine).rates


def test_a_quota_gives_its_share_of_the_rate_and_relieves_the_antagonist():
    (alone,), (half,) = rates(MACHINE, (SPIN, (0,), 1.0)), rates(MACHINE, (SPIN, (0,), 0.5))
    assert half == pytest.approx(alone / 2)
    beside = [rates(MACHINE, (LEAD, (0,), 1.0), (STREAM, (1,), quota))[0] for quota in (1.0, 0.5, 0.1)]
    assert sorted(beside) == beside
    assert beside[2] > 1.1 * beside[0]


def test_an_overcommitted_cpu_is_divided_and_what_a_quota_leaves_goes_to_the_others():
    assert cpu_time((((0,), 1.0), ((0,), 1.0)), MACHINE).shares == (0.5, 0.5)
    assert cpu_time((((0,), 1.0), ((0,), 0.2)), MACHINE).shares == pytest.approx((0.8, 0.2))
    assert cpu_time((((0, 1), 1.0), ((1,), 1.0)), MACHINE).shares == (0.75, 0.5)


def test_a_busy_sibling_slows_down_computing_and_an_idle_one_does_not():
    first, second = 0, SERVER.all_cores
    (alone,) = rates(SERVER, (SPIN, (first,), 1.0))
    assert rates(SERVER, (SPIN, (first,), 1.0), (SPIN, (second,), 1.0))[0] == pytest.approx(alone / 1.4)
    assert rates(SERVER, (SPIN, (first,), 1.0), (SPIN, (second,), 0.5))[0] == pytest.approx(alone / 1.2)
    assert rates(SERVER, (SPIN, (first,), 1.0), (SPIN, (1,), 1.0))[0] == pytest.approx(alone)


def test_caches_of_a_socket_share_its_memory_and_those_of_another_do_not():
    hungry = WorkloadModel(compute=1e-6, accesses=300_000, parallel=64)
    (alone,) = rates(SERVER, (hungry, (0,), 1.0))
    near, far = (rates(SERVER, (hungry, (0,), 1.0), (hungry, (cpu,), 1.0))[0] for cpu in (4, 8))
    assert near < 0.8 * alone
    assert far == pytest.approx(alone)


def test_its_layout_has_siblings_and_sockets():
    cpus = layout_of(SERVER).by_id
    assert len(cpus) == 32
    assert (cpus[3].core, cpus[19].core, cpus[19].llc, cpus[19].package) == (3, 3, 0, 0)
    assert [cpus[cpu].package for cpu in (0, 4, 8, 12)] == [0, 0, 1, 1]


def test_a_launch_under_a_quota_shows_the_truth_that_it_records(tmp_path):
    mixes = "mixes: [{lead: ranking, antagonists: [flood], share: {quota: [20%]}}]\n"
    text = STUDY.replace("leads: [ranking]\nantagonists: [flood]\n", mixes)
    from castmates.runner.modelled.launch import run_launch
    from castmates.study.spec import UNMANAGED

    (launch, *_) = project_of(tmp_path, text + QUIET).plan().launches
    outcome = run_launch(launch, tmp_path, tmp_path, lambda _: None, lambda: None)
    rates = {(window.scene.partition, name): window.total(name).rate for window in outcome.windows
             for name in window.scene.active if window.scene.kind == "corun"}  # fmt: skip
    lead, other = (member.name for member in launch.cohort.members)
    assert rates["quota-20", other] < 0.25 * rates[UNMANAGED, other]
    assert rates["quota-20", lead] > rates[UNMANAGED, lead]
    for (partition, name), rate in rates.items():
        scene = next(s.name for s in launch.cohort.scenes if s.kind == "corun" and s.partition == partition)
        assert rate == pytest.approx(outcome.truth[scene][name]["rate"], rel=0.02)
