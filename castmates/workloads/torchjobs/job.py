"""A PyTorch job: its model, its data, and one step of it with its phases."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from castmates.workloads.jobs import data
from castmates.workloads.jobs.asked import Asked, Shape
from castmates.workloads.jobs.loop import Unusable
from castmates.workloads.jobs.tracing import Tracer
from castmates.workloads.phases import phase
from castmates.workloads.torchjobs import models

BUILDERS = {
    "convnet": (models.ConvNet, data.images),
    "transformer": (models.Transformer, data.tokens),
    "dlrm": (models.Dlrm, data.clicks),
}


class TorchJob:
    """A model with its optimizer and its batches.

    On the CPU every operation is over when its call returns, so the phases are the work itself. On a GPU calls only
    queue work: there the phases are the time in which it is queued, and `device` is the wait until all of it is done.
    """

    def __init__(self, asked: Asked, shape: Shape) -> None:
        self._prepare(asked)
        self._device = torch.device("cuda" if asked.device == "gpu" else "cpu")
        self._training = asked.training
        model, dataset = BUILDERS[asked.model]
        torch.manual_seed(asked.seed)
        self.model: nn.Module = model(shape.details).to(self._device).train(asked.training)
        self.parameters = sum(weight.numel() for weight in self.model.parameters())
        self._optimizer = self._optimizer_of(asked.model) if asked.training else None
        self.batches = data.batches(dataset(shape.details, asked.batch, asked.seed), asked.source, shape.batches)
        self._first: list[Tensor] = []

    def step(self, number: int) -> float:
        """Make one whole step: the loss of training, or the mean of |outputs| of inference."""
        with phase("input", step=number):
            batch = self._moved(self.batches)
            self._first = self._first or batch
        if self._optimizer is None:
            with phase("forward", step=number):
                outputs = self._inferred(batch)
            return self._result(outputs, number)
        with phase("forward", step=number):
            *inputs, answers = batch
            loss = self.model.loss(self.model(*inputs), answers)
        with phase("backward", step=number):
            self._optimizer.zero_grad(set_to_none=True)
            loss.backward()
        with phase("optimizer", step=number):
            self._optimizer.step()
        return self._result(loss.detach(), number)

    def again(self) -> float:
        """Return what inference makes of its first batch now."""
        return self._inferred(self._first).item()

    def tracer(self) -> Tracer:
        """Return PyTorch's profiler, which is imported only where steps are traced."""
        from castmates.workloads.torchjobs.tracing import TorchTracer

        return TorchTracer(self)

    @torch.inference_mode()
    def _inferred(self, batch: list[Tensor]) -> Tensor:
        return self.model(*batch[:-1]).abs().mean()

    def _result(self, value: Tensor, number: int) -> float:
        """The value of a step, when everything that it queued is done."""
        if self._device.type == "cpu":
            return value.item()
        with phase("device", step=number):
            torch.cuda.synchronize()
            return value.item()

    def _moved(self, batches: Iterator[data.Batch]) -> list[Tensor]:
        batch = [torch.from_numpy(one) for one in next(batches)]
        if self._device.type == "cpu":
            return batch
        return [one.pin_memory().to(self._device, non_blocking=True) for one in batch]

    def _optimizer_of(self, model: str) -> torch.optim.Optimizer:
        if model == "dlrm":  # the usual one of tables: it needs no state for each of their rows
            return torch.optim.SGD(self.model.parameters(), lr=0.05)
        if model == "convnet":
            return torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
        return torch.optim.AdamW(self.model.parameters(), lr=3e-4)

    @staticmethod
    def _prepare(asked: Asked) -> None:
        torch.set_num_threads(asked.threads)
        torch.set_num_interop_threads(1)  # the steps have nothing to do at the same time
        torch.set_flush_denormal(True)
        if asked.device == "gpu" and not torch.cuda.is_available():
            raise Unusable("PyTorch sees no GPU here: look at the driver, or use --device cpu.")


def facts() -> dict[str, object]:
    """What decides how PyTorch computes here."""
    return {
        "torch": torch.__version__,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "interop_threads": torch.get_num_interop_threads(),
        "omp_threads": os.environ.get("OMP_NUM_THREADS"),
    }
