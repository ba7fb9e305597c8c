"""CPU lists as people write them, and as they stand in names."""

from collections.abc import Iterable

from castmates.errors import CastmatesError


def parse(text: str, key: str) -> list[int]:
    """`0-3,8` -> [0, 1, 2, 3, 8], in the order written; `key` names the place in errors."""
    cpus: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if int(last or first) < int(first):
            raise CastmatesError(f"{key} has the range {part}, which ends before it begins; write {last}-{first}.")
        cpus += range(int(first), int(last or first) + 1)
    twice = [cpu for cpu in cpus if cpus.count(cpu) > 1]
    if twice:
        raise CastmatesError(f"{key} names CPU {twice[0]} twice; name each CPU once.")
    return cpus


def name_of(cpus: Iterable[int]) -> str:
    """[0, 1, 2, 8] -> `0-2.8`, fit for names of members and files."""
    return format_cpu_list(cpus, between=".")


def format_cpu_list(cpus: Iterable[int], between: str = ",") -> str:
    """[0, 1, 2, 8] -> `0-2,8`."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return between.join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
