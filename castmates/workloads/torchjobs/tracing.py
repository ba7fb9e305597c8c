"""Traces steps of a PyTorch job with PyTorch's own profiler: its operations, and the modules that they lie in.

PyTorch notes modules of scripted models alone, so hooks mark them here; they are there only while steps are traced.
"""

import gzip
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.hooks import RemovableHandle

from castmates.workloads.jobs.tracing import INPUT, STEP, Mark, Marked

if TYPE_CHECKING:
    from castmates.workloads.jobs.data import Batch  # which needs NumPy; a program that is followed may lack it

MODULE = "castmates_module "  # before the path of a module
SUFFIX = ".pt.trace.json"  # as TensorBoard's plug-in wants it
FAST = 1  # how hard gzip tries: the job stands still meanwhile


class ModuleTracer:
    """PyTorch's profiler, with marks around the calls of modules."""

    failures = (RuntimeError,)
    shapes = False  # whether operations name the shapes of what they are given

    def __init__(self) -> None:
        self.modules: Mapping[str, nn.Module] = {}  # by the paths that they get
        self._open: list[record_function] = []
        self._folder = Path()

    def start(self, folder: Path) -> None:
        """Begin a trace, with the memory that operations are given."""
        self._folder = folder
        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(ProfilerActivity.CUDA)
        self._profile = profile(activities=activities, profile_memory=True, record_shapes=self.shapes)
        self._profile.start()
        self._hooks = [hook for path, module in self.modules.items() for hook in self._marked(path, module)]

    def step(self, number: int) -> Mark:
        """Mark what happens inside as a step."""
        mark: Mark = record_function(f"{STEP}#{number}")
        return mark

    def stop(self) -> None:
        """End the trace and write it, compressed."""
        for hook in self._hooks:
            hook.remove()
        self._profile.stop()
        plain = self._folder / f"{socket.gethostname()}{SUFFIX}"
        self._profile.export_chrome_trace(str(plain))
        with plain.open("rb") as content, gzip.open(f"{plain}.gz", "wb", FAST) as compressed:
            shutil.copyfileobj(content, compressed, 1 << 20)
        plain.unlink()

    def threads(self) -> tuple[int, int]:
        """How many threads work for one operation, and how many operations may run side by side."""
        return torch.get_num_threads(), torch.get_num_interop_threads()

    def _marked(self, path: str, module: nn.Module) -> list[RemovableHandle]:
        """Hooks of a module; where the program compiles, they are left out of that, and nothing is compiled again."""

        def enter(_module: nn.Module, _inputs: object) -> None:
            mark = record_function(MODULE + path)
            mark.__enter__()
            self._open.append(mark)

        def leave(_module: nn.Module, _inputs: object, _outputs: object) -> None:
            if self._open:  # else it was entered before the trace
                self._open.pop().__exit__(None, None, None)

        plain = torch.compiler.disable if "torch._dynamo" in sys.modules else lambda hook: hook
        return [
            module.register_forward_pre_hook(plain(enter)),
            module.register_forward_hook(plain(leave), always_call=True),
        ]


class Traced(Protocol):
    """What is traced of a job."""

    model: nn.Module
    batches: "Iterator[Batch]"


class TorchTracer(ModuleTracer):
    """The profiler of our own jobs, which also marks the wait for a batch."""

    def __init__(self, job: Traced) -> None:
        super().__init__()
        self._job = job
        self.modules = {path.replace(".", "/"): module for path, module in job.model.named_modules()}

    def start(self, folder: Path) -> None:
        """Begin a trace."""
        super().start(folder)
        self._job.batches = Marked(self._job.batches, lambda: record_function(INPUT))

    def stop(self) -> None:
        """End it."""
        if isinstance(self._job.batches, Marked):
            self._job.batches = self._job.batches.batches
        super().stop()
