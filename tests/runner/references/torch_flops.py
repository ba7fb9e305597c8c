"""Runs a program of PyTorch under PyTorch's own counter of operations, and prints those of a step.

Nothing of Castmates is here: steps are seen by PyTorch's hook of optimizers.
"""

import json
import os
import runpy
import sys

from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.flop_counter import FlopCounterMode

script, steps, warm_up = sys.argv[1], int(sys.argv[2]), 2
counter = FlopCounterMode(display=False)
first, seen = None, 0


def step_is_over(optimizer, *_):
    global first, seen
    first = first or optimizer
    seen += optimizer is first
    if optimizer is first and seen == warm_up:
        counter.__enter__()
    elif optimizer is first and seen == warm_up + steps:
        os.write(3, json.dumps(counter.get_total_flops() / steps).encode())
        os._exit(0)


register_optimizer_step_post_hook(step_is_over)
sys.argv = [script]
runpy.run_path(script, run_name="__main__")
