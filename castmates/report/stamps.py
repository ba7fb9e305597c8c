"""What is stamped on the page and on every figure, in a few words."""

from castmates.analysis.stamps import NOT_MEASURED, TRUSTWORTHY
from castmates.analysis.verdicts import INSENSITIVE, NO_DATA, SENSITIVE, TOO_FEW
from castmates.report.read import Results

_STAMPS = {TOO_FEW: "too few blocks for the controls", NO_DATA: "no data for the controls"}
_SENSITIVITY = {TOO_FEW: "too few blocks for the positive control", NOT_MEASURED: "sensitivity not measured"}


def stamps(results: Results) -> list[tuple[str, bool]]:
    """The study's stamp and the word on its sensitivity, each with whether all is well."""
    word, sensitive = results.stamp[0], results.sensitivity[0]
    return [
        (_STAMPS.get(word, word), word == TRUSTWORTHY),
        (_SENSITIVITY.get(sensitive, sensitive), sensitive == SENSITIVE),
    ]


def caveat(results: Results) -> str:
    """What stands in the corner of every figure; "" where the study is trustworthy and nothing speaks against it."""
    (word, good), (sensitive, _) = stamps(results)
    parts = [] if good else [word]
    return " · ".join(parts + [sensitive] * (sensitive == INSENSITIVE))


def stamped(results: Results) -> str:
    """The sentence at the end of every caption."""
    return f"This study is stamped: {', '.join(word for word, _ in stamps(results))}."
