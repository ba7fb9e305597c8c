"""Runs a program of PyTorch under PyTorch's own profiler, and prints how often a step calls what its table has.

Nothing of Castmates is here: steps are seen by PyTorch's hook of optimizers.
"""

import json
import os
import runpy
import sys
from collections import Counter
from pathlib import Path

import torch  # noqa: F401
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.profiler import ProfilerActivity, profile

script, steps, warm_up = sys.argv[1], int(sys.argv[2]), 8
profiler = profile(activities=[ProfilerActivity.CPU])
first, seen = None, 0


def step_is_over(optimizer, *_):
    global first, seen
    first = first or optimizer
    seen += optimizer is first
    if optimizer is not first:
        return
    if seen == warm_up:
        profiler.start()
    elif seen == warm_up + steps:
        profiler.stop()
        profiler.export_chrome_trace("reference.json")
        with Path("reference.json").open(encoding="utf-8") as file:
            events = [one for one in json.load(file)["traceEvents"] if one.get("cat") == "cpu_op"]
        counts = Counter(one["name"].removeprefix("aten::") for one in events)
        known = {one.key.removeprefix("aten::") for one in profiler.key_averages() if one.key.startswith("aten::")}
        counts = {name: count / steps for name, count in counts.items() if name in known}
        os.write(3, json.dumps(counts).encode())
        os._exit(0)


register_optimizer_step_post_hook(step_is_over)
sys.argv = [script]
runpy.run_path(script, run_name="__main__")
