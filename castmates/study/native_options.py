"""What our own programs take as options, so that a slip is found when a study is read, not when it is started."""

import re

from castmates.study.last_level import NATIVE
from castmates.study.model import Workload

NUMBER = r"\d+(?:\.\d+)?"
WRITES = (r"0|(?:\d{1,2}|100)%", "a share from 0% to 100%, such as 20%")
EXPECTED = {
    "writes": WRITES,
    "bytes": (
        rf"0*[1-9]\d*[KMG]?|(?=.*[1-9]){NUMBER}(?:llc|ways?|l[1-9])",
        "a size such as 64M, or in shares of a cache such as 0.5llc, 2ways or 2l2",
    ),
    "rate": (
        rf"(?=.*[1-9]){NUMBER}[KMG]?(?:B/s)?|(?=.*[1-9])(?:100(?:\.0+)?|\d{{1,2}}(?:\.\d+)?)%",
        "a rate such as 5GB/s, 20M (units a second) or 60% (of this machine's peak, 100% at most)",
    ),
}
SERVICE = "openloop"
COUNT = (r"[1-9]\d*[KMG]?", "a whole number from 1 on")
EXPECTED_OF_SERVICE = {
    "server": ("memcached|redis|nginx", "memcached, redis or nginx"),
    "load": (rf"(?=.*[1-9]){NUMBER}[KM]?", "a number of requests a second, such as 20000 or 20K"),
    "connections": (r"[1-9]\d?|1\d\d|2[0-4]\d|25[0-6]", "a whole number from 1 to 256"),
    "keys": COUNT,
    "value": COUNT,
    "writes": WRITES,
    "popularity": ("zipf|uniform", "zipf or uniform"),
    "wait": ("spin|sleep", "spin or sleep"),
    "seed": COUNT,
    "units": COUNT,
    "connect": (".+", "the path of a socket"),
}


def misread(workload: Workload) -> str:
    """Which of its options its program would not take, and what it takes; "" where there is none."""
    if workload.environment != NATIVE:
        return ""
    if is_service := workload.words[:1] == [SERVICE]:
        for name in workload.options:
            if name not in EXPECTED_OF_SERVICE:
                return f"has 'options.{name}', which {SERVICE} does not have; it has {', '.join(EXPECTED_OF_SERVICE)}"
    for name, (form, expected) in (EXPECTED_OF_SERVICE if is_service else EXPECTED).items():
        written = workload.options.get(name, False)
        if written is False or "{" in str(written):  # left out, or filled in later
            continue
        if written is True or re.fullmatch(form, str(written), re.ASCII) is None:
            return f"has 'options.{name}: {written}', but expected {expected}"
    return ""
