"""The word `rdt=` on the kernel's command line: what it switches on and off, and how it has to be changed."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

KEY = "rdt="
OFF = "!"
PLACE = "the kernel's command line"


@dataclass(frozen=True, slots=True)
class Switches:
    """The features of resctrl that the command line names, by the kernel's words for them: l3cat, cmt, mba …"""

    on: frozenset[str]
    off: frozenset[str]

    def state(self, word: str) -> bool | None:
        """Return whether a feature is switched on or off; None where that is left to the kernel.

        The kernel lets "on" win, in whatever order and word the two stand.
        """
        return True if word in self.on else False if word in self.off else None


def switches(command_line: str | None) -> Switches:
    """Read every `rdt=`: `!x` is off, `x` is on."""
    items = _items(_words(command_line))
    return Switches(
        frozenset(item for item in items if not item.startswith(OFF)),
        frozenset(item.removeprefix(OFF) for item in items if item.startswith(OFF)),
    )


def change(command_line: str | None, allow: Collection[str], force: Iterable[str] = ()) -> str:
    """Describe in one line how to let these features be, and how to switch on those that the kernel switches off."""
    there = _words(command_line)
    forced = list(dict.fromkeys(force))
    kept = [item for item in _items(there) if item.removeprefix(OFF) not in {*allow, *forced} or item in forced]
    items = list(dict.fromkeys([*kept, *forced]))
    old, new = " ".join(there), KEY + ",".join(items)
    if not items:
        return f"remove {old} from {PLACE} and restart"
    return f"put {new} in place of {old} on {PLACE} and restart" if there else f"add {new} to {PLACE} and restart"


def _words(command_line: str | None) -> list[str]:
    words = (command_line or "").split()
    ours = words[: words.index("--")] if "--" in words else words  # what follows is meant for init
    return [word for word in ours if word.startswith(KEY)]


def _items(words: Iterable[str]) -> list[str]:
    return [item for word in words for item in word.removeprefix(KEY).split(",") if item]
