"""Measures a block, or plays it on the modelled machine: its design says which."""

from castmates.modelled import block as modelled
from castmates.pipeline.measure_block import Run
from castmates.runner import block as real
from castmates.study.spec import Block


def runner_of(block: Block) -> Run:
    """What runs this block."""
    return real.run_block if block.design.model is None else modelled.run_block
