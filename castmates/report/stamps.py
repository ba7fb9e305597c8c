"""What is stamped on the page and on every figure, in a few words."""

from castmates.analysis.mask_stamp import VERIFIED
from castmates.analysis.stamps import NOT_MEASURED, TRUSTWORTHY
from castmates.analysis.verdicts import INSENSITIVE, NO_DATA, SENSITIVE, TOO_FEW
from castmates.report.read import Results

_STAMPS = {TOO_FEW: "too few blocks for the controls", NO_DATA: "no data for the controls"}
_SENSITIVITY = {TOO_FEW: "too few blocks for the positive control", NOT_MEASURED: "sensitivity not measured"}


def stamps(results: Results) -> list[tuple[str, bool]]:
    """The stamps of the study, of its sensitivity and, where masks were set, of them; each with whether all is well."""
    word, sensitive = results.stamp[0], results.sensitivity[0]
    masks = results.masks
    return [
        (_STAMPS.get(word, word), word == TRUSTWORTHY),
        (_SENSITIVITY.get(sensitive, sensitive), sensitive == SENSITIVE),
        *([(f"masks {masks[0]}", masks[0] == VERIFIED)] if masks else []),
    ]


def caveat(results: Results) -> str:
    """What stands in the corner of every figure; "" where the study is trustworthy and nothing speaks against it."""
    (word, good), (sensitive, _), *masks = stamps(results)
    parts = [] if good else [word]
    parts += [sensitive] * (sensitive == INSENSITIVE)
    return " · ".join(parts + [word for word, verified in masks if not verified])


def stamped(results: Results) -> str:
    """The sentence at the end of every caption."""
    return f"This study is stamped: {', '.join(word for word, _ in stamps(results))}."
