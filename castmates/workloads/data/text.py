"""Writes `text`: prose-like lines of an invented language with headings and figures, for compressors."""

from collections.abc import Iterator

from castmates.workloads.data.common import Numbers, arguments

SHORT = [first + second for first in "bcdfghjklmnprstvwz" for second in "aeiou"]
SYLLABLES = [*SHORT, "tra", "ste", "pro", "con", "ing", "er", "al", "en", "or"]


def words(numbers: Numbers, count: int = 6000) -> list[str]:
    """The vocabulary: the first words are the most used."""
    return ["".join(numbers.pick(SYLLABLES) for _ in range(1 + numbers.below(4))) for _ in range(count)]


def lines(numbers: Numbers, vocabulary: list[str]) -> Iterator[str]:
    """Lines of text, for ever."""
    number = 0
    while True:
        number += 1
        if numbers.below(12) == 0:
            yield f"\n== {number}. {numbers.pick(vocabulary).title()} ==\n"
        parts = [vocabulary[numbers.skewed(len(vocabulary))] for _ in range(6 + numbers.below(9))]
        if numbers.below(5) == 0:
            parts[numbers.below(len(parts))] = f"{numbers.between(0, 1000):.3f}"
        yield " ".join(parts).capitalize() + numbers.pick([".", ",", ";", "."]) + "\n"


def main() -> None:
    """Write the file."""
    given = arguments("Writes a text of a fixed seed.", bytes=2_000_000)
    numbers = Numbers(557)
    left = given.bytes
    with (given.folder / "text").open("w", encoding="ascii", newline="\n") as file:
        for line in lines(numbers, words(numbers)):
            file.write(line[:left])
            left -= len(line)
            if left <= 0:
                return


if __name__ == "__main__":
    main()
