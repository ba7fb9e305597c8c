"""Governors, limits, sleep, frequency and throttling, read below the root of an invented machine."""

import time

import pytest

from castmates.counters import choose
from castmates.counters.proc.frequency import CPUINFO, NONE_HERE, Frequency, Throttling
from castmates.counters.proc.procstat import Asleep, Conditions, read_asleep, slept_s
from tests.unit.sysfs import write

BASE = "sys/devices/system/cpu"
COOLER = "sys/class/thermal/cooling_device3"


@pytest.fixture
def root(tmp_path):
    for cpu in (0, 1):
        write(tmp_path / BASE / f"cpu{cpu}/cpufreq/scaling_governor", "performance")
        write(tmp_path / BASE / f"cpu{cpu}/cpufreq/scaling_max_freq", 3000000)
        write(tmp_path / BASE / f"cpu{cpu}/cpufreq/scaling_cur_freq", 2700000 + cpu)
    write(tmp_path / BASE / "cpu1/online", 1)
    write(tmp_path / BASE / "intel_pstate/no_turbo", 0)
    write(tmp_path / COOLER / "type", "Processor")
    write(tmp_path / COOLER / "cur_state", 0)
    return tmp_path


def found(conditions: Conditions, *, opening: dict = {}, closing: dict = {}) -> dict:  # noqa: B006 (read only)
    """What a window shows when these files are written before its opening, and before its close."""
    for path, value in opening.items():
        write(path, value)
    conditions.start([])
    for path, value in closing.items():
        write(path, value)
    return {one.metric: (one.value, one.note) for one in conditions.stop()}


def begun(root, cpus=(0, 1)) -> Conditions:
    conditions = Conditions(cpus, root)
    conditions.attach({})
    return conditions


def test_a_machine_left_alone_is_as_it_was(root):
    values = {metric: value for metric, (value, _) in found(begun(root)).items()}
    assert values == dict.fromkeys(("settings_changed", "cpus_offline", "slept_s", "coolers"), 0.0)
    assert "scaling_governor of CPU 0 performance" in begun(root).about()["at the launch's begin"]


@pytest.mark.parametrize(
    ("file", "value", "said"),
    [
        ("cpu1/cpufreq/scaling_governor", "powersave", "scaling_governor of CPU 1 was performance and is powersave"),
        ("cpu0/cpufreq/scaling_max_freq", 2000000, "scaling_max_freq of CPU 0 was 3000000 and is 2000000"),
        ("intel_pstate/no_turbo", 1, "no_turbo was 0 and is 1"),
    ],
)
def test_a_setting_that_changed_is_seen_at_either_edge_and_told_once(root, file, value, said):
    change = {root / BASE / file: value}
    assert found(begun(root), closing=change)["settings_changed"] == (1.0, said)
    write(root / BASE / file, "as before")  # another begin, changed back before the close
    conditions = begun(root)
    there_and_back = found(conditions, opening=change, closing={root / BASE / file: "as before"})
    assert there_and_back["settings_changed"][0] == 1.0


def test_a_setting_that_changed_before_the_window_spoils_all_later_ones(root):
    conditions = begun(root)
    write(root / BASE / "cpu0/cpufreq/scaling_governor", "powersave")
    assert found(conditions)["settings_changed"][0] == 1.0
    assert found(conditions)["settings_changed"][0] == 1.0


def test_another_cpus_governor_is_nobodys_business_and_a_cpu_that_goes_offline_is_named(root):
    change = {root / BASE / "cpu1/cpufreq/scaling_governor": "powersave"}
    assert found(begun(root, [0]), closing=change)["settings_changed"][0] == 0.0
    assert found(begun(root), closing={root / BASE / "cpu1/online": 0})["cpus_offline"] == (1.0, "CPU 1")


def test_a_limit_that_the_kernel_lowers_for_heat_is_an_effect(root):
    lowered = {root / BASE / "cpu0/cpufreq/scaling_max_freq": 1000000, root / COOLER / "cur_state": 4}
    hot = found(begun(root), closing=lowered)
    assert (hot["settings_changed"][0], hot["coolers"][0]) == (0.0, 1.0)
    governed = lowered | {root / BASE / "cpu0/cpufreq/scaling_governor": "powersave"}
    write(root / BASE / "cpu0/cpufreq/scaling_governor", "performance")
    assert found(begun(root), closing=governed)["settings_changed"][0] == 1.0


def test_a_machine_without_frequency_files_has_nothing_to_change(tmp_path):
    assert found(begun(tmp_path))["settings_changed"] == (0.0, "")
    assert begun(tmp_path).about()["at the launch's begin"] == "this kernel does not control the frequency"


def test_sleep_is_claimed_only_when_it_is_certain():
    first = Asleep(least=1_000, most=9_000)
    assert slept_s(first, Asleep(2_000, 10_000)) == 0.0  # the clocks were read a moment apart
    assert slept_s(first, Asleep(9_001, 12_000)) == pytest.approx(1e-9)
    assert slept_s(first, Asleep(5_000_001_000, 5_000_009_000)) == pytest.approx(5, abs=1e-5)
    before = read_asleep()
    time.sleep(0.01)
    assert slept_s(before, read_asleep()) == 0.0


def test_the_frequency_is_read_at_both_edges(root):
    frequency = Frequency([0, 1], root)
    frequency.start([])
    write(root / BASE / "cpu0/cpufreq/scaling_cur_freq", 1200000)
    told = [(one.subject, one.value, one.note) for one in frequency.stop()]
    assert told == [
        ("cpu0", 2700.0, "scaling_cur_freq"),
        ("cpu1", 2700.001, "scaling_cur_freq"),
        ("cpu0", 1200.0, "scaling_cur_freq"),
        ("cpu1", 2700.001, "scaling_cur_freq"),
    ]


def test_without_a_driver_the_frequency_comes_from_cpuinfo_and_says_so(tmp_path):
    lines = ["processor\t: 1", "model name\t: x", "cpu MHz\t\t: 2445.426", "", "processor\t: 3", "cpu MHz\t\t: 800.5"]
    write(tmp_path / "proc/cpuinfo", "\n".join(lines))
    frequency = Frequency([1, 3, 4], tmp_path)
    frequency.start([])
    told = [(one.subject, one.value, one.note) for one in frequency.stop()][:3]
    assert told == [("cpu1", 2445.426, CPUINFO), ("cpu3", 800.5, CPUINFO), ("cpu4", None, "not shown")]
    assert frequency.available() is None
    assert Frequency([4], tmp_path).available()


def test_throttle_events_are_counted_between_the_edges(root):
    folder = root / BASE / "cpu1/thermal_throttle"
    write(folder / "core_throttle_count", 100)
    write(folder / "package_throttle_count", 7)
    throttling = Throttling([0, 1], root)
    throttling.start([])
    write(folder / "core_throttle_count", 103)
    told = {(one.subject, one.metric): one.value for one in throttling.stop()}
    assert told == {("cpu1", "core_throttles"): 3.0, ("cpu1", "package_throttles"): 0.0}
    (folder / "core_throttle_count").unlink()
    throttling.start([])
    assert [one.value for one in throttling.stop()] == [None, 0.0]
    assert Throttling([0], root).available() == NONE_HERE


def test_an_event_of_a_package_is_counted_once_however_many_cpus_see_it(root):
    for cpu, count in ((0, 10), (1, 5)):
        write(root / BASE / f"cpu{cpu}/thermal_throttle/package_throttle_count", count)
        write(root / BASE / f"cpu{cpu}/thermal_throttle/core_power_limit_count", count)
        write(root / BASE / f"cpu{cpu}/topology/physical_package_id", 0)
    throttling = Throttling([0, 1], root)
    throttling.start([])
    write(root / BASE / "cpu0/thermal_throttle/package_throttle_count", 12)
    write(root / BASE / "cpu1/thermal_throttle/package_throttle_count", 7)
    write(root / BASE / "cpu1/thermal_throttle/core_power_limit_count", 9)
    told = {(one.subject, one.metric): one.value for one in throttling.stop()}
    assert told["package0", "package_throttles"] == 2.0
    assert told["cpu1", "core_power_limits"] == 4.0
    assert throttling.about()["for power limits"] == "yes"


def test_the_uncores_limits_must_stay_as_they_were(root):
    folder = root / BASE / "intel_uncore_frequency/package_00_die_00"
    write(folder / "min_freq_khz", 800000)
    write(folder / "max_freq_khz", 2400000)
    conditions = Conditions([0], root)
    conditions.attach({})
    conditions.start([])
    write(folder / "max_freq_khz", 1600000)
    found = {one.metric: one for one in conditions.stop()}
    assert found["settings_changed"].note == "max_freq_khz of package_00_die_00 was 2400000 and is 1600000"


def test_what_this_machine_lacks_is_named_in_the_provenance():
    collectors = choose.choose_collectors([0], [], {})
    names = [one.name for one in collectors]
    assert len(set(names)) == len(names)
    assert {"culprits", "conditions", "places", "throttling", "frequency", "procstat"} <= set(names)
    assert all(one.about() for one in collectors)
