"""The table of known quirks (castmates/machine/quirks.yaml) -> a page with each of them and its sources."""

from pathlib import Path

from castmates.machine.quirks import Kernels, Processors, Quirk, table

INTRODUCTION = """What is known to be wrong or hidden on some processors and kernels, of resctrl and of perf.
`castmates doctor` shows the rows that apply to a machine. The authors saw none of this on hardware: each row has its
sources.

This page is generated from `castmates/machine/quirks.yaml`."""


def page(_: Path) -> str:
    """All quirks, in the order of the table."""
    return "\n\n".join(["# Known quirks", INTRODUCTION, *map(_section, table())]) + "\n"


def _section(quirk: Quirk) -> str:
    where = [f"{name}: {text}" for name, text in _conditions(quirk).items() if text]
    sources = ", ".join(f"[{number}]({url})" for number, url in enumerate(quirk.sources, 1))
    what = f"`{quirk.name}`; {'; '.join(where)}."
    parts = [f"## {quirk.title}", what, quirk.happens, quirk.do, f"Sources: {sources}."]
    return "\n\n".join(part.replace("<", "&lt;") for part in parts)


def _conditions(quirk: Quirk) -> dict[str, str]:
    return {
        "processors": " or ".join(map(_processors, quirk.processors)),
        "kernels": _kernels(quirk.kernels),
        "flags": ", ".join(quirk.flags),
        "where there is": ", ".join(quirk.needs),
        "errata": ", ".join(quirk.errata),
    }


def _processors(some: Processors) -> str:
    models = ", ".join(map(str, some.models)) or ", ".join(some.parts)
    steppings = "–".join(map(str, some.steppings)) if some.steppings else ""
    family = "" if some.family is None else f"family {some.family}"
    words = [some.vendor or some.implementer or "", family, f"model {models}" if models else ""]
    return " ".join(filter(None, [*words, f"stepping {steppings}" if steppings else ""]))


def _kernels(some: Kernels) -> str:
    since = f"from {some.since}" if some.since else ""
    fixed = f"without the fix, which is in {', '.join(some.fixed)}" if some.fixed else ""
    return ", ".join(filter(None, [since, fixed]))
