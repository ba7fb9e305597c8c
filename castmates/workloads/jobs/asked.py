"""What the command line of a job asks for; standard library only."""

import argparse
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

SIZES = ("tiny", "small")
MODES = ("train", "infer")
SOURCES = ("pipeline", "memory")
SEED = 20
NO_TRAINING = "--load is of requests: it needs --mode infer"


@dataclass(frozen=True, slots=True)
class Shape:
    """One model in one size: its batch, how many batches are cycled in memory, and what the builder needs to know."""

    summary: str
    batch: int
    batches: int
    details: Mapping[str, int]
    # The value of the last warm-up step (the loss of training, the mean of |outputs| of inference) from the usual seed,
    # of this batch; of another one where the name has it.
    known: Mapping[str, float] = field(default_factory=dict)


Shapes = Mapping[tuple[str, str], Shape]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyJob:
    """What is wanted of a job of any framework; every field is also a fact that the job prints."""

    model: str
    threads: int
    seed: int
    steps: int | None
    load: float | None
    arrivals: int | None

    @property
    def training(self) -> bool:
        """Whether a step trains."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(AnyJob):
    """One job of a model that is trained or asked, in one size."""

    size: str
    mode: str
    batch: int
    source: str
    device: str

    @property
    def training(self) -> bool:
        """Whether a step trains."""
        return self.mode == "train"

    def known(self, shape: Shape) -> float | None:
        """The value of the last warm-up step, where it is known for what is asked."""
        name = self.mode if self.batch == shape.batch else f"{self.mode} {self.batch}"
        return shape.known.get(name) if self.seed == SEED else None


class OneSentence(argparse.ArgumentParser):
    """An argument parser whose complaints are one sentence."""

    def error(self, message: str) -> NoReturn:
        """End with status 2."""
        self.exit(2, f"Bad arguments: {message}; see --help and --list.\n")


def parse(program: str, what: str, shapes: Shapes, devices: Iterable[str], words: list[str] | None = None) -> Asked:
    """Read the command line of a job; `--list` and `--help` print and end."""
    parser = OneSentence(prog=f"python -m {program}", description=what)
    models = list(dict.fromkeys(model for model, _ in shapes))
    parser.add_argument("--list", action="store_true", help="show the jobs and end")
    parser.add_argument("--model", choices=models)
    parser.add_argument("--size", choices=SIZES, default=SIZES[0])
    parser.add_argument("--mode", choices=MODES, default=MODES[0])
    parser.add_argument("--batch", type=positive, help="examples in a batch (default: the size's own)")
    parser.add_argument("--threads", type=positive, help="threads of the framework (default: one per CPU given)")
    parser.add_argument(
        "--source",
        choices=SOURCES,
        default=SOURCES[0],
        help="pipeline: put each batch together from the data set (the default); memory: cycle a few batches made at "
        "the start",
    )
    parser.add_argument("--device", choices=list(devices), default="cpu", help="what computes (default: cpu)")
    parser.add_argument("--seed", type=positive, default=SEED, help=f"of weights and data (default: {SEED})")
    parser.add_argument("--steps", type=positive, help="end after so many steps (default: go on until SIGTERM)")
    add_load(parser)
    given = parser.parse_args(words)
    if given.list:
        print(listing(shapes))
        parser.exit(0)
    if given.model is None:
        parser.error(f"--model is missing: {', '.join(models)}")
    if given.load and given.mode == "train":
        parser.error(NO_TRAINING)
    return Asked(
        model=given.model,
        size=given.size,
        mode=given.mode,
        batch=given.batch or shapes[given.model, given.size].batch,
        threads=given.threads or len(os.sched_getaffinity(0)),
        source=given.source,
        device=given.device,
        seed=given.seed,
        steps=given.steps,
        **load_of(given),
    )


def listing(shapes: Shapes) -> str:
    """List in a few lines which jobs there are."""
    width = max(len(model) for model, _ in shapes)
    return "\n".join(
        f"--model {model:{width}} --size {size:5}  {shape.summary}, batch {shape.batch}"
        for (model, size), shape in shapes.items()
    )


def add_load(parser: argparse.ArgumentParser) -> None:
    """Add the options of a job that answers requests."""
    parser.add_argument(
        "--load",
        type=_rate,
        help="answer requests that arrive at random, so many a second on average, whether or not they are answered in "
        "time (default: the next step begins when one ends)",
    )
    parser.add_argument(
        "--arrivals", type=positive, help="seed of when requests arrive (default: another one in each process)"
    )


def load_of(given: argparse.Namespace) -> Mapping[str, Any]:
    """The fields of what is asked for that are of requests."""
    seed = given.arrivals or int.from_bytes(os.urandom(4)) + 1
    return {"load": given.load, "arrivals": seed if given.load else None}


def _rate(text: str) -> float:
    factor = {"K": 1e3, "M": 1e6}.get(text[-1:], 1.0)
    try:
        found = float(text.removesuffix("K").removesuffix("M")) * factor
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a rate above 0 per second, such as 50 or 2K")
    return found


def positive(text: str) -> int:
    """Read a number of things."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1 on")
    return int(text)
