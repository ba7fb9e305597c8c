"""What a trace launch records, as its launch defines it."""

from castmates.study.frozen import Frozen

STACKS, LATENCIES = SAMPLED = ("stacks", "latencies")  # families, each with a recorder that samples it
MOST_SAMPLED = 500 << 20  # bytes of the file of each


class Tracing(Frozen):
    """What is recorded in a trace launch."""

    seconds: float  # of each recording
    rounds: int  # recordings of each scene
    steps: int  # of the lead that its framework profiles within each
    events: tuple[str, ...]  # families
    members: tuple[str, ...] = ()  # workloads whose processes are recorded; none: all
    buffer: int = 0  # bytes for the kernel's events of each CPU; 0: as large as the user may have
    most: int = 2 * 10**9  # bytes of recorded events at which a recording ends
    keep: int = 0  # bytes of raw files that are kept
