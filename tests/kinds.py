"""What a test needs decides where it is, and where it is decides its mark."""

from pathlib import PurePath

KINDS = {
    "unit": "pure",
    "golden": "pure",
    "runner": "real",
    "real": "real",
    "workflow": "sweep",
    "chaos": "chaos",
    "browser": "browser",
    "lab": "lab",
    "slurm": "slurm",
}


def kind_of(test: str) -> str:
    """Return the kind of a test by the file that its node id begins with; what lies elsewhere is pure."""
    parts = PurePath(test.partition("::")[0]).parts
    after = parts[parts.index("tests") + 1 :] if "tests" in parts else parts
    return KINDS.get(after[0], "pure") if after else "pure"
