"""Traces steps of a PyTorch job with PyTorch's own profiler: its operations, and the modules that they lie in.

PyTorch notes modules of scripted models alone, so hooks mark them here; they are there only while steps are traced.
"""

import gzip
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import torch
from torch import nn
from torch.nn.modules import module as modules
from torch.profiler import ProfilerActivity, profile, record_function

from castmates.workloads.jobs.data import Batch
from castmates.workloads.jobs.tracing import INPUT, STEP, Mark, Marked

MODULE = "castmates_module "  # before the path of a module
SUFFIX = ".pt.trace.json"  # as TensorBoard's plug-in wants it
FAST = 1  # how hard gzip tries: the job stands still meanwhile


class Traced(Protocol):
    """What is traced of a job."""

    model: nn.Module
    batches: Iterator[Batch]


class TorchTracer:
    """PyTorch's profiler, with marks around modules and around the wait for a batch."""

    failures = (RuntimeError,)

    def __init__(self, job: Traced) -> None:
        self._job = job
        self._paths = {id(module): path.replace(".", "/") for path, module in job.model.named_modules()}
        self._open: list[record_function] = []
        self._folder = Path()

    def start(self, folder: Path) -> None:
        """Begin a trace, with the memory that operations are given."""
        self._folder = folder
        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(ProfilerActivity.CUDA)
        self._profile = profile(activities=activities, profile_memory=True)
        self._profile.start()
        self._hooks = [
            modules.register_module_forward_pre_hook(self._enter),
            modules.register_module_forward_hook(self._leave, always_call=True),
        ]
        self._job.batches = Marked(self._job.batches, lambda: record_function(INPUT))

    def step(self, number: int) -> Mark:
        """Mark what happens inside as a step."""
        return record_function(f"{STEP}#{number}")

    def stop(self) -> None:
        """End the trace and write it, compressed."""
        for hook in self._hooks:
            hook.remove()
        if isinstance(self._job.batches, Marked):
            self._job.batches = self._job.batches.batches
        self._profile.stop()
        plain = self._folder / f"{socket.gethostname()}{SUFFIX}"
        self._profile.export_chrome_trace(str(plain))
        with plain.open("rb") as content, gzip.open(f"{plain}.gz", "wb", FAST) as compressed:
            shutil.copyfileobj(content, compressed, 1 << 20)
        plain.unlink()

    def threads(self) -> tuple[int, int]:
        """How many threads work for one operation, and how many operations may run side by side."""
        return torch.get_num_threads(), torch.get_num_interop_threads()

    def _enter(self, module: nn.Module, _inputs: object) -> None:
        mark = record_function(MODULE + self._paths.get(id(module), type(module).__name__))
        mark.__enter__()
        self._open.append(mark)

    def _leave(self, _module: nn.Module, _inputs: object, _outputs: object) -> None:
        self._open.pop().__exit__(None, None, None)
