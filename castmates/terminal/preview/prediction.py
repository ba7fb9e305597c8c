"""What a plan measures of a grid, and what it leaves to prediction, in words."""

from collections.abc import Iterator

from castmates.english import counted
from castmates.study.predict_keys import FEWEST_PAIRS
from castmates.study.spec import Plan


def prediction_words(plan: Plan) -> str:
    """A sentence or two; "" where nothing is predicted."""
    return " ".join(_sentences(plan))


def _sentences(plan: Plan) -> Iterator[str]:
    grid = plan.prediction
    if grid is None:
        return
    whole, fitted = len(grid.leads) * len(grid.antagonists), grid.profiles + grid.pairs
    profiles = f", {grid.profiles} of them with bubbles and reporters" if grid.profiles else ""
    yield (
        f"{fitted} mixes{profiles}, which are {100 * fitted / whole:.0f} % of the grid's {whole} pairs, are measured; "
        "what the other pairs lose is predicted from them, in both roles."
    )
    if fitted < FEWEST_PAIRS:
        yield f"That is too little: {FEWEST_PAIRS} mixes of two are the fewest from which others are predicted."
    if len(grid.check) < grid.to_check:
        count = f"only {len(grid.check)}" if grid.check else "none"
        yield (
            f"Of the {counted(grid.to_check, 'further pair')} that were to show the error {count} can: every other "
            "loss is measured already, and none is left to predict; measure less."
        )
    elif grid.check:
        yield f"{counted(len(grid.check), 'further pair')} {'shows' if len(grid.check) == 1 else 'show'} the error."
