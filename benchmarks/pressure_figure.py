"""The figure of the pressure benchmark: a point with its interval for each antagonist, a panel for each lead."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from castmates.report.figures.style import COLOURS, GREY, PAGE, styled, write


@dataclass(frozen=True)
class Bar:
    """What one antagonist took from one lead, in per cent of its rate."""

    name: str
    loss: float
    half_width: float
    ours: bool
    elsewhere: bool  # it ran on the lead's CPU


def draw(panels: Sequence[tuple[str, Sequence[Bar]]], stem: Path) -> None:
    """Draw all leads side by side, the antagonists in the order of what they take from the first one."""
    from matplotlib.figure import Figure

    order = [bar.name for bar in sorted(panels[0][1], key=lambda bar: np.nan_to_num(bar.loss, nan=-1e9))]
    with styled():
        figure = Figure(figsize=(PAGE, 1.2 + 0.13 * len(order)), layout="constrained")
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, (lead, bars) in zip(axes, panels, strict=True):
            for bar in bars:
                colour = GREY if bar.elsewhere else COLOURS[0] if bar.ours else COLOURS[1]
                at = order.index(bar.name)
                axis.errorbar(bar.loss, at, xerr=bar.half_width, fmt="o", color=colour, markersize=3, elinewidth=1)
            axis.axvline(0, color=GREY, linewidth=0.6)
            axis.set_title(f"loss of {lead}")
            axis.set_xlabel("per cent of its rate alone")
        axes[0].set_yticks(range(len(order)), order)
        axes[0].set_ylim(-0.7, len(order) - 0.3)
        for colour, words in ((COLOURS[0], "ours"), (COLOURS[1], "stress-ng"), (GREY, "on the lead's CPU")):
            axes[-1].plot([], [], "o", color=colour, markersize=3, label=words)
        axes[-1].legend(loc="lower right")
    source = pd.DataFrame([{"lead": lead, **asdict(bar)} for lead, bars in panels for bar in bars])
    write(figure, source, stem)
