"""Readings of GPUs, by NVIDIA's own Python package, from a stand-in for the driver's library.

No machine with a GPU is at hand: this shows what is made of NVML's answers, not what a GPU answers.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from castmates.counters.gpus import GpuReadings
from castmates.linux.nvml import DRIVER, NO_DRIVER, NO_PACKAGE, reasons_text, seen
from castmates.machine.doctor.tools import gpus
from castmates.workloads.native.build import find_compiler

SOURCE = Path(__file__).parents[1] / "data" / "nvml" / "stand_in.c"
ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys, time
from pathlib import Path
from castmates.counters.gpus import GpuReadings
from castmates.linux.nvml import seen
readings = GpuReadings(Path(sys.argv[1]))
readings.attach({}); readings.start(["lead"]); time.sleep(0.35)
samples = [[s.subject, s.metric, s.value, s.note] for s in readings.stop()]
readings.close()
print(json.dumps({"why": readings.available(), "about": readings.about(), "samples": samples,
                  "seen": seen(Path(sys.argv[1]))}))
"""


@pytest.fixture
def root(tmp_path):
    """A machine with NVIDIA's driver."""
    file = tmp_path / DRIVER
    file.parent.mkdir(parents=True)
    file.touch()
    return tmp_path


@pytest.mark.needs("compiler")
def test_what_nvml_answers_becomes_samples(root):
    pytest.importorskip("pynvml")
    library = root / "libnvidia-ml.so.1"
    subprocess.run([*find_compiler(), "-shared", "-fPIC", "-o", str(library), str(SOURCE)], check=True)
    variables = os.environ | {"LD_LIBRARY_PATH": str(root), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, str(root)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["why"] is None
    assert found["seen"] == {"names": [f"Stand-in {x}, driver 580.82.07" for x in "AB"], "lack": ""}
    assert found["about"]["gpu1"] == "Stand-in B, driver 580.82.07"
    by = {}
    for subject, metric, value, note in found["samples"]:
        by.setdefault((subject, metric), []).append((value, note))
    assert {len(readings) for (_, metric), readings in by.items() if metric == "gpu_mean_w"} == {1}
    assert all(len(readings) >= 2 for (_, metric), readings in by.items() if metric != "gpu_mean_w"), "both edges"
    firsts = {metric: readings[0] for (subject, metric), readings in by.items() if subject == "gpu0"}
    watts, note = firsts.pop("gpu_mean_w")
    assert (watts, note) == (pytest.approx(150, rel=0.02), "")
    assert firsts == {
        "gpu_utilisation": (75.0, ""),
        "gpu_memory": (4 * 2**30, ""),
        "gpu_w": (149.5, ""),
        "gpu_sm_ghz": (1.5, ""),
        "gpu_memory_ghz": (5.001, ""),
        "gpu_celsius": (61, ""),
        "gpu_held_down": (1.0, "power cap"),
    }
    assert by["gpu1", "gpu_mean_w"] == [(None, "this GPU counts no energy")]
    assert by["gpu1", "gpu_celsius"][0] == (None, "")
    assert by["gpu1", "gpu_held_down"][0] == (0.0, ""), "an idle GPU is not held down"


def test_each_lack_is_one_sentence(root, tmp_path, monkeypatch):
    assert seen(tmp_path / "elsewhere") == {"names": [], "lack": NO_DRIVER}
    assert GpuReadings(tmp_path / "elsewhere").available() == NO_DRIVER
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert GpuReadings(root).available() == NO_PACKAGE
    monkeypatch.delitem(sys.modules, "pynvml")
    pytest.importorskip("pynvml")
    assert GpuReadings(root).available().startswith("NVML refuses: "), "a driver without its library"
    rows = [gpus({"gpus": each}) for each in (None, seen(tmp_path / "elsewhere"), {"names": [], "lack": NO_PACKAGE})]
    assert [row.state for row in rows] == ["unknown", "no", "partly"]
    assert all(row.cost and row.remedy for row in rows)
    assert gpus({"gpus": {"names": ["A, driver 1"], "lack": ""}}).state == "yes"


def test_reasons_are_named_and_idleness_is_none():
    assert reasons_text(0x01 | 0x02) == ""
    assert reasons_text(0x04 | 0x40) == "power cap, heat (hardware)"
