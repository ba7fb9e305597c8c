"""Idle states and the uncore's range, as docs/preparing-the-machine.md promises that machine.json has them."""

import json

from castmates.machine.facts import machine_facts
from castmates.report.machine_facts import MachineFacts
from castmates.report.text.machine import described
from tests.unit import sysfs

CPU = "sys/devices/system/cpu"


def test_idle_states_are_recorded_with_where_they_are_switched_off(tmp_path):
    root = sysfs.build(tmp_path, sysfs.xeon())
    sysfs.write(root / CPU / "cpuidle/current_driver", "intel_idle")
    sysfs.write(root / CPU / "cpuidle/current_governor", "menu")
    for cpu in range(8):
        for number, (name, latency) in enumerate((("POLL", 0), ("C1", 2), ("C6", 170))):
            folder = root / CPU / f"cpu{cpu}/cpuidle/state{number}"
            for file, value in (("name", name), ("latency", latency), ("disable", int(name == "C6" and cpu < 4))):
                sysfs.write(folder / file, value)
    facts = json.loads(json.dumps(machine_facts(root)))
    assert facts["idle_states"] == {
        "driver": "intel_idle",
        "governor": "menu",
        "states": [
            {"name": "POLL", "wakes_in_us": 0, "off_on": ""},
            {"name": "C1", "wakes_in_us": 2, "off_on": ""},
            {"name": "C6", "wakes_in_us": 170, "off_on": "0-3"},
        ],
    }
    assert dict(described(MachineFacts.model_validate(facts)))["Idle states"] == "intel_idle: POLL, C1, C6 (off on 0-3)"


def test_the_uncores_range_is_recorded(tmp_path):
    root = sysfs.build(tmp_path, sysfs.xeon())
    for file, khz in (("min", 800_000), ("max", 2_400_000), ("initial_min", 800_000), ("initial_max", 2_500_000)):
        sysfs.write(root / CPU / f"intel_uncore_frequency/package_00_die_00/{file}_freq_khz", khz)
    facts = machine_facts(root)
    assert facts["uncore_clock"]["package_00_die_00"] == {
        "min": 800, "max": 2400, "initial_min": 800, "initial_max": 2500,
    }  # fmt: skip
    assert dict(described(MachineFacts.model_validate(facts)))["Uncore clock"] == "800 to 2400 MHz"


def test_a_machine_that_chooses_no_idle_states_has_none(tmp_path):
    root = sysfs.build(tmp_path, sysfs.xeon())
    sysfs.write(root / CPU / "cpuidle/current_driver", "none")
    facts = machine_facts(root)
    assert (facts["idle_states"], facts["uncore_clock"]) == (None, None)
    assert "Idle states" not in dict(described(MachineFacts.model_validate(facts)))
