"""What the command line of a job asks for; standard library only."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from castmates.workloads.jobs.asked import SEED, AnyJob, OneSentence, add_load, load_of, positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(AnyJob):
    """One job of requests to a language model."""

    prompt: int
    generate: int


def parse(words: Sequence[str] | None = None) -> Asked:
    """Read the command line; `--help` prints and ends."""
    parser = OneSentence(prog="python -m castmates.workloads.llamajobs", description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="the weights, a file in llama.cpp's format GGUF")
    parser.add_argument("--prompt", type=positive, default=32, help="tokens of a request's prompt (default: 32)")
    parser.add_argument("--generate", type=positive, default=17, help="tokens of its answer (default: 17)")
    parser.add_argument("--threads", type=positive, help="threads of llama.cpp (default: one per CPU given)")
    parser.add_argument("--seed", type=positive, default=SEED, help=f"of the requests' tokens (default: {SEED})")
    parser.add_argument("--steps", type=positive, help="end after so many requests (default: go on until SIGTERM)")
    add_load(parser)
    given = parser.parse_args(words)
    if not given.model.is_file():
        parser.error(f"--model {given.model} is no file")
    return Asked(
        model=str(given.model),
        prompt=given.prompt,
        generate=given.generate,
        threads=given.threads or len(os.sched_getaffinity(0)),
        seed=given.seed,
        steps=given.steps,
        **load_of(given),
    )
