"""What the command line asks for: which job, and how it runs; standard library only."""

import argparse
import os
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from castmates.workloads import phase_file
from castmates.workloads.jobs.asked import NO_TRAINING, OneSentence, add_load, load_of, positive
from castmates.workloads.tfmodels import jobs
from castmates.workloads.tfmodels.jobs import Shape

SOURCES = ("records", "memory")
DEVICES = ("cpu", "gpu")
PRECISIONS = ("float32", "mixed_bfloat16", "int8")
ENGINES = ("tensorflow", "lite")
IN_LITE = ("resnet50", "mobilenetv2", "mobilenetv3")  # models of which nothing stands in the way of 8-bit integers
SCALED = ("mobilenetv2", "mobilenetv3")  # models whose layers have any width
DOC = "Run one Model Garden job, step after step, with a heartbeat for each."


@dataclass(frozen=True, slots=True)
class Wish:
    """One job as it is wanted; every field is also a fact that the job prints."""

    model: str
    size: str
    mode: str
    batch: int
    threads: int
    source: str
    data: str | None
    device: str
    xla: bool
    onednn: bool
    precision: str
    phases: bool
    rows: int | None
    steps: int | None
    engine: str
    width: float
    inter_threads: int
    load: float | None
    arrivals: int | None

    @property
    def shape(self) -> Shape:
        """The model's shape in this size."""
        return jobs.SHAPES[self.model, self.size]

    @property
    def vocabulary(self) -> Path | None:
        """The file beside the records that only the transformer has, and needs."""
        return Path(self.data).parent / "sentencepiece.model" if self.data and self.model == "transformer" else None

    @property
    def training(self) -> bool:
        """Whether a step trains."""
        return self.mode == "train"


def parse(words: list[str] | None = None) -> Wish | None:
    """Read the command line; None where only the list of jobs is wanted."""
    parser = _parser()
    given = parser.parse_args(words)
    if given.list:
        return None
    if given.model is None:
        parser.error("--model is missing")
    source = given.source or ("records" if given.data else "memory")
    shape = jobs.SHAPES[given.model, given.size]
    wish = Wish(
        model=given.model,
        size=given.size,
        mode=given.mode,
        batch=given.batch or shape.batch,
        threads=given.threads or len(os.sched_getaffinity(0)),
        source=source,
        data=given.data,
        device=given.device,
        xla=given.xla,
        onednn=given.onednn == "on",
        precision=given.precision,
        phases=given.phases or phases_wanted(),
        rows=given.rows,
        steps=given.steps,
        engine=given.engine,
        width=given.width,
        inter_threads=given.inter_threads or given.threads or len(os.sched_getaffinity(0)),
        **load_of(given),
    )
    if complaint := _complaint(wish):
        parser.error(complaint)
    return wish


def phases_wanted() -> bool:
    """Whether the runner listens to the phases of the steps."""
    return bool(os.environ.get(phase_file.VARIABLE))


def _parser() -> OneSentence:
    parser = OneSentence(prog="python -m castmates.workloads.tfmodels", description=DOC)
    parser.add_argument("--list", action="store_true", help="show the jobs and end")
    parser.add_argument("--model", choices=jobs.MODELS)
    parser.add_argument("--size", choices=jobs.SIZES, default="tiny")
    parser.add_argument("--mode", choices=jobs.MODES, default="train")
    parser.add_argument("--batch", type=positive, help="examples in a batch (default: the job's own)")
    parser.add_argument("--steps", type=positive, help="end after so many steps (default: go on for ever)")
    add_load(parser)
    add_runtime(parser)
    parser.add_argument("--xla", action="store_true", help="compile the step with XLA")
    parser.add_argument(
        "--precision", choices=PRECISIONS, default=PRECISIONS[0], help="int8 needs --engine lite (default: float32)"
    )
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default=ENGINES[0],
        help="lite: inference by TensorFlow Lite, whose model is made at the start (default: tensorflow)",
    )
    parser.add_argument(
        "--width",
        type=_share,
        default=1.0,
        help="mobilenetv2 and mobilenetv3 only: how many channels each layer has, times the model's own (default: 1)",
    )
    parser.add_argument("--data", metavar="PATTERN", help="the files that are read, such as 'folder/*.tfrecord'")
    parser.add_argument(
        "--source",
        choices=SOURCES,
        help="records: read and decode the files of --data (the default where it is given); memory: cycle a few "
        "batches made at the start",
    )
    parser.add_argument(
        "--phases",
        action="store_true",
        help="time input, forward, backward and optimizer of each step, and print their medians at the end; a "
        "workload with 'phases: true' does so anyway",
    )
    parser.add_argument("--rows", type=positive, help="dlrm only: rows of each embedding table, at most")
    return parser


def add_runtime(parser: argparse.ArgumentParser) -> None:
    """Add the options that every way of running a job has."""
    parser.add_argument("--threads", type=positive, help="threads in each pool (default: one per CPU given)")
    parser.add_argument(
        "--inter-threads",
        type=positive,
        help="threads of the pool that runs operations side by side (default: as --threads)",
    )
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="gpu needs the environment tfmodels-cuda")
    parser.add_argument("--onednn", choices=("on", "off"), default="on", help="oneDNN's kernels (default: on)")


def _complaint(wish: Wish) -> str:
    """Return in a few words what of a wish cannot be, or ''."""
    if wish.load and wish.training:
        return NO_TRAINING
    if wish.model == "dlrm" and wish.batch == 1:
        return "the dlrm model cannot take a batch of 1, its smallest is 2"
    if wish.rows is not None and wish.model != "dlrm":
        return f"--rows is about the embedding tables of dlrm, and the {wish.model} model has none"
    if wish.model == "dlrm" and wish.precision != "float32":
        return "the package's dlrm model adds losses of two precisions and works with --precision float32 alone"
    if complaint := _of_engine(wish):
        return complaint
    if wish.width != 1 and wish.model not in SCALED:
        return f"--width is for {' and '.join(SCALED)}, whose layers have any width, and not for {wish.model}"
    if wish.phases and wish.xla:
        return "phases are told by a clock inside the step, which a step compiled with --xla cannot read: leave one out"
    if wish.data is None and wish.source == "records":
        return (
            f"--data is missing: name the records to read (castmates internals build-inputs "
            f"{wish.shape.inputs} makes some)"
        )
    if wish.data is None and wish.model == "transformer":
        return (
            "--data is missing: the transformer's vocabulary (sentencepiece.model) lies beside its records "
            f"(castmates internals build-inputs {wish.shape.inputs} makes both)"
        )
    if wish.data is not None and not glob(wish.data):  # noqa: PTH207  (a pattern from anywhere, not below a folder)
        return f"no file matches --data '{wish.data}'"
    if wish.vocabulary is not None and not wish.vocabulary.is_file():
        return f"{wish.vocabulary} is missing: the transformer reads its vocabulary beside its records"
    return ""


def _of_engine(wish: Wish) -> str:
    """Return in a few words what of a wish its engine does not do, or ''."""
    if wish.engine != "lite":
        return "--precision int8 needs --engine lite" if wish.precision == "int8" else ""
    if wish.training or wish.model not in IN_LITE:
        return f"--engine lite is for --mode infer of {', '.join(IN_LITE)}"
    if wish.precision == "mixed_bfloat16":
        return "--engine lite works with --precision float32 and int8"
    if wish.xla or wish.phases or wish.device != "cpu":
        return "--engine lite goes with none of --xla, --phases and --device gpu"
    return ""


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0.05 <= share <= 4:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0.05 to 4")
    return share
