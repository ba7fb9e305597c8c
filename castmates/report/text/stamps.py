"""What is stamped on the page and on every file of a figure, in a few plain words; the tables have the codes."""

from typing import NamedTuple

from castmates.analysis.effects.stamps import NOT_MEASURED, TRUSTWORTHY, VERIFIED, is_bad, origin_word
from castmates.analysis.effects.verdicts import INCONCLUSIVE, INSENSITIVE, NO_DATA, SENSITIVE, TOO_FEW, UNSTABLE
from castmates.report.results import Results
from castmates.report.text.words import listed

# docs/report.md defines each.
_CONTROLS = {
    TRUSTWORTHY: "noise within the margin",
    INCONCLUSIVE: "noise may exceed the margin",
    UNSTABLE: "not steady",
    TOO_FEW: "too few launches to know the noise",
    NO_DATA: "noise not measured",
}
_SENSITIVITY = {
    SENSITIVE: "a known loss was seen",
    INSENSITIVE: "a known loss was missed",
    TOO_FEW: "too few launches of a known loss",
    NOT_MEASURED: "no known loss measured",
}
NO_LOSSES = "What the program loses where it is not traced was not measured."
GOOD, BAD, NEITHER = "good", "bad", "neither"


class Pill(NamedTuple):
    """A stamp as it is shown."""

    word: str
    state: str
    meaning: str  # in a sentence


def origin(results: Results) -> str:
    """What comes first wherever numbers are no measurement; "" where all of them are one."""
    return origin_word(results.platforms)


def stamps(results: Results) -> list[Pill]:
    """The stamps of the study, of its sensitivity and, where masks were set, of them; each with how good it is.

    What is not measured has no good ones: that a model agrees with itself shows nothing of a machine.
    """
    if results.only_traced:
        return [Pill("a profile", NEITHER, "Steps were traced."), Pill("no losses measured", NEITHER, NO_LOSSES)]
    (word, why), (sensitive, seen) = results.stamp, results.sensitivity_stamp
    masks = results.masks
    well = NEITHER if origin(results) else GOOD
    return [
        Pill(_CONTROLS[word], well if word == TRUSTWORTHY else BAD, why),
        Pill(_SENSITIVITY[sensitive], well if sensitive == SENSITIVE else BAD, seen),
        *([Pill(f"cache partitions {masks[0]}", well if masks[0] == VERIFIED else BAD, masks[1])] if masks else []),
        *nodes_stamps(results),
    ]


def nodes_stamps(results: Results) -> list[Pill]:
    """The stamps on classes, processors and nodes, where there are several."""
    table = results.stamps[results.stamps["stamp"].isin(["machines", "nodes"])]
    first = first_words(results)
    return [
        Pill(word, BAD if is_bad(word) else NEITHER, sentence.removeprefix(first))
        for word, sentence in table[["word", "sentence"]].itertuples(index=False, name=None)
    ]


def caveat(results: Results) -> str:
    """What stands in the corner of a figure's files; "" where all is measured and nothing speaks against it."""
    if results.only_traced:
        return origin(results)
    control, sensitive, *others = stamps(results)
    parts = [origin(results)] + [control.word] * (control.state == BAD)
    parts += [sensitive.word] * (results.sensitivity_stamp[0] == INSENSITIVE)
    return " · ".join(filter(None, parts + [pill.word for pill in others if pill.state == BAD]))


def stamped(results: Results) -> str:
    """The sentence at the end of every caption that travels with its figure."""
    words = [origin(results), *(pill.word for pill in stamps(results))]
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
