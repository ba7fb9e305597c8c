"""Make torch.pt.trace.json.gz: two steps of a very small model under PyTorch's profiler, in the torch environment."""

import gzip
import itertools
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from castmates.workloads.torchjobs.tracing import TorchTracer


class Tiny(nn.Module):
    """A row of a table, through two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(50, 8, mode="sum", sparse=True)
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows to the scores of classes."""
        return self.layers(self.table(rows))


class Job:
    """What a tracer looks at."""

    def __init__(self) -> None:
        self.model = Tiny()
        self.batches = itertools.repeat((torch.arange(6).reshape(3, 2), torch.tensor([0, 1, 2])))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self) -> None:
        """Train on a batch."""
        rows, answers = next(self.batches)
        loss = functional.cross_entropy(self.model(rows), answers)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()


torch.set_num_threads(1)
torch.manual_seed(1)
job = Job()
for _ in range(3):
    job.step()
tracer = TorchTracer(job)
with tempfile.TemporaryDirectory() as folder:
    tracer.start(Path(folder))
    job.step()
    for number in range(2):
        with tracer.step(number):
            job.step()
    tracer.stop()
    (trace,) = Path(folder).rglob("*.pt.trace.json.gz")
    content = gzip.decompress(trace.read_bytes())
    Path(__file__).with_name("torch.pt.trace.json.gz").write_bytes(gzip.compress(content, 9, mtime=0))
