"""What our own kernels take as sizes and rates, so that a slip is found when a study is read, not at its launch."""

import re

from castmates.study.last_level import NATIVE
from castmates.study.model import Workload

NUMBER = r"\d+(?:\.\d+)?"
EXPECTED = {
    "bytes": (
        rf"0*[1-9]\d*[KMG]?|(?=.*[1-9]){NUMBER}(?:llc|ways?|l[1-9])",
        "a size such as 64M, or in shares of a cache such as 0.5llc, 2ways or 2l2",
    ),
    "rate": (
        rf"(?=.*[1-9]){NUMBER}[KMG]?(?:B/s)?|(?=.*[1-9])(?:100(?:\.0+)?|\d{{1,2}}(?:\.\d+)?)%",
        "a rate such as 5GB/s, 20M (units a second) or 60% (of this machine's peak, 100% at most)",
    ),
}


def misread(workload: Workload) -> str:
    """Which of its options its kernel would not take, and what it takes; "" where there is none."""
    if workload.environment != NATIVE:
        return ""
    for name, (form, expected) in EXPECTED.items():
        written = workload.options.get(name, False)
        if written is False or "{" in str(written):  # left out, or filled in later
            continue
        if written is True or re.fullmatch(form, str(written), re.ASCII) is None:
            return f"has 'options.{name}: {written}', but expected {expected}"
    return ""
