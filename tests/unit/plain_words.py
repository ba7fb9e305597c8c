"""Sentences and words that a reader must not meet again: on the page, in the terminal, in docs."""

import re
from collections.abc import Iterator

# What the first users stumbled over, in pieces that no other sentence has; spaces stand for line ends too.
SENTENCES = (
    "may have changed beside",
    "may or may not",
    "the data cannot tell",
    "found no fault",
    "does not exclude a difference",
    "rounds would tell",
    "cannot tell yet",
    "only in the controls, the same comparison",
    "was seen to lose",
    "no round without a rejected",
    "forgets them",
    "forgets it",
    "the figure and the table show each",
    "measure precisely, and leave",
    "a search's own estimate",
    "as a rule nothing is multiplexed",
    "and what is says so",
    "is told in the report",
    "costs the others nothing",
    "has to run a sweep as root",
    "they never decide it",
    "the headline speaks of",
    "see why",
    "and says so",
    "what the members give together",
    "times the work done that one does alone",
    "times a launch was left out",
    "why: what was counted",
    "is refused in",
    "no fair sample",
    "health: can the numbers",
    "is missing was not recorded",
    "nothing differs between the two",
    "nobody works inside windows",
    "by nobody whom",
    "of no use (a column",
    "but those within it lead to files",
    "is whole without them",
    "say the version",
    "forget the launches that failed",
    "in which every round has a rejected window",
    "select jobs to execute",
    "not counted, for there are",
    "no top-down metrics: perf",
    "rate in 1 pairs",
    "the report is in results",
    "progress and counters only",
    "none is needed.",
    "a default study needs",
    "pip install castmates[phases]",
    "(<not supported>)",
    "as much in 6 comparisons",
)
TELLING = re.compile(r"(?<!can't )(?<!can’t )\b(?:tell|tells|told|telling)\b", re.IGNORECASE)
WORDS = (  # of a sentence for people; reference pages may need some of them
    TELLING,
    re.compile(r"\b(?:likewise|whereof|whereby|therein)\b", re.IGNORECASE),
    re.compile(r"\bof (?:its|their) own(?=[.,;:)”]|$)", re.IGNORECASE),
    re.compile(r", for (?:there|it|they|a|the) \w+ (?:is|are|has|have|was|were)\b", re.IGNORECASE),
)


def lost_sentences(text: str) -> Iterator[str]:
    """Which of the sentences stand in a text."""
    plain = _one_line(text).casefold()
    yield from (sentence for sentence in SENTENCES if sentence in plain)


def strange_words(text: str) -> Iterator[str]:
    """Words as nobody says them, with what stands around each."""
    plain = _one_line(text)
    for pattern in WORDS:
        yield from (plain[max(found.start() - 30, 0) : found.end() + 30] for found in pattern.finditer(plain))


def _one_line(text: str) -> str:
    return " ".join(text.split())
