"""What is stamped on the page and on every figure, in a few words."""

from castmates.analysis.effects.mask_stamp import VERIFIED
from castmates.analysis.effects.stamps import NOT_MEASURED, TRUSTWORTHY, origin_word
from castmates.analysis.effects.verdicts import INSENSITIVE, NO_DATA, SENSITIVE, TOO_FEW
from castmates.report.results import Results
from castmates.report.text.words import listed

_STAMPS = {TOO_FEW: "too few blocks for the controls", NO_DATA: "no data for the controls"}
_SENSITIVITY = {TOO_FEW: "too few blocks for the positive control", NOT_MEASURED: "sensitivity not measured"}
GOOD, BAD, NEITHER = "good", "bad", "neither"


def origin(results: Results) -> str:
    """What comes first wherever numbers are no measurement; "" where all of them are one."""
    return origin_word(results.platforms)


def stamps(results: Results) -> list[tuple[str, str]]:
    """The stamps of the study, of its sensitivity and, where masks were set, of them; each with how good it is.

    What is not measured has no good ones: that a model agrees with itself shows nothing of a machine.
    """
    word, sensitive = results.stamp[0], results.sensitivity[0]
    masks = results.masks
    well = NEITHER if origin(results) else GOOD
    return [
        (_STAMPS.get(word, word), well if word == TRUSTWORTHY else BAD),
        (_SENSITIVITY.get(sensitive, sensitive), well if sensitive == SENSITIVE else BAD),
        *([(f"masks {masks[0]}", well if masks[0] == VERIFIED else BAD)] if masks else []),
    ]


def caveat(results: Results) -> str:
    """What stands in the corner of every figure; "" where the study is measured, trustworthy and nothing is wrong."""
    (word, state), (sensitive, _), *masks = stamps(results)
    parts = [origin(results)] + [word] * (state == BAD)
    parts += [sensitive] * (sensitive == INSENSITIVE)
    return " · ".join(filter(None, parts + [word for word, state in masks if state == BAD]))


def stamped(results: Results) -> str:
    """The sentence at the end of every caption."""
    words = [origin(results), *(word for word, _ in stamps(results))]
    return f"This study is stamped: {', '.join(filter(None, words))}."


def first_words(results: Results) -> str:
    """What every caption and alternative text begins with: "" where all is measured."""
    word = origin(results)
    return f"{word[:1].upper()}{word[1:]}. " if word else ""


def source(results: Results) -> str:
    """The end of every caption: platforms, host and stamps."""
    host = f", on {results.machine.hostname}" if results.machine.hostname else ""
    platforms = listed(results.platforms) if results.platforms else "no numbers"
    return f"Source: {platforms}{host}. {stamped(results)}"
