"""The trial of memory bandwidth on this machine, with sets that are small."""

import json

import pytest

from castmates.machine import trial_records
from castmates.study.memory_peak import Peak
from castmates.study.placement.layout import Cpu, Layout
from castmates.trials.memory_peak import measure
from tests.runner.test_contract import PLACES


@pytest.mark.needs("two-cpus")
def test_the_trial_measures_keeps_a_record_and_reports(tmp_path):
    two = Layout(tuple(Cpu(cpu, core=cpu, package=0, llc=0) for cpu in (0, 1)), llc_bytes={0: 1 << 20})
    said: list[str] = []
    built = (PLACES.cache / "environments").absolute()
    built.mkdir(parents=True, exist_ok=True)  # by the trial, where it is the first to need them
    (tmp_path / "environments").symlink_to(built)
    record = measure(PLACES.envs, tmp_path, two, said.append)
    assert json.loads(json.dumps(record)) == trial_records.MEMORY_PEAK.read(tmp_path)
    peak = Peak.of(record)
    assert peak is not None
    assert [cores for cores, _ in peak.curve] == [1, 2]
    assert all(reached[mode] > 0 for _, reached in peak.curve for mode in reached)
    assert any(line.startswith("1 core: read ") for line in said)  # it may have waited for the machine
    assert said[-2] == record["said"]
