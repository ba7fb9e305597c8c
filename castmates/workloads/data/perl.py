"""Writes `mail`, a box of generated letters, and beside it the Perl script that scores and indexes them."""

from pathlib import Path

from castmates.workloads.data.common import Numbers, arguments
from castmates.workloads.data.text import SYLLABLES, lines, words

DATA_FILES = ["letters.pl"]
LURES = ["FREE!!!", "winner", "100% guaranteed", "click here", "cheap", "urgent reply"]


def _letter(numbers: Numbers, vocabulary: list[str], number: int) -> str:
    name = numbers.pick(SYLLABLES) + numbers.pick(SYLLABLES)
    head = (
        f"From: {name}{numbers.below(400)}@{numbers.pick(SYLLABLES)}.example\n"
        f"Date: {1 + numbers.below(28)} {numbers.pick(['Jan', 'Apr', 'Jul', 'Oct'])} 20{10 + numbers.below(16)} "
        f"{numbers.below(24):02}:{numbers.below(60):02}\n"
        f"Subject: {' '.join(numbers.pick(vocabulary) for _ in range(4))} #{number}\n\n"
    )
    source = lines(numbers, vocabulary)
    body = [next(source) for _ in range(5 + numbers.below(25))]
    if numbers.below(4) == 0:
        body.insert(numbers.below(len(body)), f"{numbers.pick(LURES)} http://{name}.example/{numbers.below(99999)}\n")
    return head + "".join(body) + "\n\f\n"


def main() -> None:
    """Write the files."""
    given = arguments("Writes a box of letters of a fixed seed.", letters=1500)
    numbers = Numbers(500)
    vocabulary = words(numbers)
    with (given.folder / "mail").open("w", encoding="ascii", newline="\n") as file:
        for number in range(given.letters):
            file.write(_letter(numbers, vocabulary, number))
    script = Path(__file__).with_name("letters.pl").read_text(encoding="ascii")
    (given.folder / "letters.pl").write_text(script, encoding="ascii")


if __name__ == "__main__":
    main()
