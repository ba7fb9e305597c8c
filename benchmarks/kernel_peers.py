"""Our kernels against programs made for the same purpose, in turns: stream's bandwidth and chase's latency.

Peers: likwid-bench and stress-ng (Debian: apt-get install likwid stress-ng), and lat_mem_rd of lmbench (Debian's
non-free). One that is not installed is said to be missing.
"""

import argparse
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks import peers
from benchmarks.common import Report, TimeBox, arguments_of, percent, run, say, scratch
from benchmarks.kernels import last_cpu, others, programs, rate
from castmates.linux.kernel_files import read_pairs
from castmates.machine.lock import machine_lock

MIB = 1 << 20
SET_SIZES = {"L1": 24_000, "L2": 240_000, "L3": 8_000_000, "memory": 128_000_000}  # bytes, of all arrays together
CHASE_SIZES = {"L1": 16 << 10, "L2": 128 << 10, "L2 (half of it)": 256 << 10, "beyond": 4 << 20}
PEERS_OF_MODE = {
    "triad": ("stream_avx", "stream_avx_fma"),
    "copy": ("copy_avx", "copy_sse"),
    "nontemporal": ("stream_mem_avx", "stream_mem_avx_fma"),
}  # likwid-bench's names
AVX512_PEERS = {
    "triad": ("stream_avx512", "stream_avx512_fma"),
    "copy": ("copy_avx512",),
    "nontemporal": ("stream_mem_avx512",),
}  # where the processor has AVX-512
OURS = "ours"
AIM_RATE = 0.95  # of the best peer's
AIM_LATENCY = 0.03  # away from the peer's, up to L2

Found = dict[tuple[str, str], dict[str, list[float]]]  # (mode, size): contender: of each round


def main() -> None:
    """Measure in turns, and print the tables."""
    options = _options()
    chance = random.Random(options.seed)
    rates, latencies = _nothing(), _nothing()
    place, cpu = programs(), last_cpu()
    with machine_lock("kernel_peers (benchmark)"), scratch(in_memory=True) as folder:
        ours = partial(rate, place, seconds=options.seconds, cpu=cpu, folder=folder)
        report = Report("The kernels beside their peers", "kernel_peers")
        report.text(others())
        for number in TimeBox(options.minutes).portions():
            say(f"round {number + 1}")
            _round_of_rates(chance, ours, cpu, rates)
            _round_of_latencies(ours, cpu, latencies)
    _tell_rates(report, rates)
    _tell_latencies(report, latencies)
    report.print()


def _options() -> argparse.Namespace:
    parser = arguments_of(__doc__, minutes=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one run of ours; likwid-bench takes one")
    return parser.parse_args()


def _nothing() -> Found:
    return defaultdict(lambda: defaultdict(list))


def peers_of_mode(root: Path = Path("/")) -> dict[str, tuple[str, ...]]:
    """likwid-bench's tests for each mode of ours, as far as the processor has their instructions."""
    wide = "avx512f" in read_pairs(root / "proc/cpuinfo").get("flags", "").split()
    return {mode: (*tests, *(AVX512_PEERS[mode] if wide else ())) for mode, tests in PEERS_OF_MODE.items()}


def _round_of_rates(chance: random.Random, ours: Callable[[Sequence[str]], float], cpu: int, found: Found) -> None:
    """All contenders at each size, in random order, in GB/s."""
    for mode, tests in peers_of_mode().items():
        for size, amount in SET_SIZES.items():
            command = ["stream", "--mode", mode, "--bytes", str(amount)]
            contenders: dict[str, Callable[[], float | None]] = {
                OURS: lambda command=command: ours(command) * MIB / 1e9,  # type: ignore[misc]
                **{test: partial(peers.likwid, test, amount, cpu) for test in tests},
            }
            if mode == "triad":
                contenders["stress-ng stream"] = partial(peers.stress_ng_stream, amount, cpu)
            for name in chance.sample(list(contenders), len(contenders)):
                value = contenders[name]()
                if value is not None:
                    found[mode, size][name].append(value)


def _round_of_latencies(ours: Callable[[Sequence[str]], float], cpu: int, found: Found) -> None:
    """Ours before and after the peer, which goes over all sizes by itself, in ns."""
    for turn in (0, 1):
        for size, amount in CHASE_SIZES.items():
            found["chase", size][OURS].append(1e9 / ours(["chase", "--bytes", str(amount)]))
        if turn == 0:
            ladder = peers.lat_mem_rd(max(CHASE_SIZES.values()) // MIB, cpu)
            for size, amount in CHASE_SIZES.items():
                if amount in ladder:
                    found["chase", size]["lat_mem_rd"].append(ladder[amount])


def _tell_rates(report: Report, found: Found) -> None:
    rows, missed, compared = [], [], 0
    for (mode, size), values in found.items():
        medians = {name: statistics.median(rates) for name, rates in values.items()}
        others = {name: value for name, value in medians.items() if name != OURS}
        best = max(others, key=lambda name: others[name], default=None)
        ratio = medians[OURS] / others[best] if best else None
        compared += ratio is not None
        if ratio is not None and ratio < AIM_RATE:
            missed.append(f"{mode} in {size} ({percent(ratio)})")
        told = ", ".join(f"{name} {value:.2f}" for name, value in others.items())
        tops = max(values[OURS]) / max(values[best]) if best else None
        rows.append(
            [mode, f"{size}, {SET_SIZES[size]:,} bytes", str(len(values[OURS])), f"{medians[OURS]:.2f}", told or "none"]
            + [percent(share) if share else "–" for share in (ratio, tops)]
        )
    report.text(
        "GB/s (10^9 bytes of the instructions, without the lines that are fetched before they are written), one "
        "thread, median of the rounds; in each, all contenders of a row took turns in random order. `stress-ng stream` "
        "is the mean of its copy, scale, add and triad. The last two columns: ours / the best peer, by medians and by "
        "the fastest rounds.",
    )
    report.table(["mode", "working set", "rounds", "ours", "peers", "of the best", "of the best, fastest"], rows)
    _missing(report)
    _verdict(report, f"at least {percent(AIM_RATE, 0)} of the best peer", missed, compared)


def _tell_latencies(report: Report, found: Found) -> None:
    rows, missed, compared = [], [], 0
    for (_, size), values in found.items():
        ours, peer = statistics.median(values[OURS]), values.get("lat_mem_rd")
        cells = ["–"] * 3
        if peer:
            away, away_fastest = ours / statistics.median(peer) - 1, min(values[OURS]) / min(peer) - 1
            cells = [f"{statistics.median(peer):.3f}", percent(away), percent(away_fastest)]
            compared += size.startswith("L")
            if abs(away) > AIM_LATENCY and size.startswith("L"):
                missed.append(f"{size} ({percent(away)})")
        rows.append([f"{size}, {CHASE_SIZES[size] >> 10} KiB", f"{ours:.3f}", *cells])
    report.text(
        "ns per load, one chain, median of the rounds; the peer (`lat_mem_rd -t`: random order, lines of 64 bytes) ran "
        "between two runs of ours. Differences by medians and by the fastest rounds; beyond L2 the cache is shared "
        "with neighbours whom we do not see, so there the figure is reported and no aim is set.",
    )
    report.table(["working set", "ours", "lat_mem_rd", "difference", "difference, fastest"], rows)
    _verdict(report, f"within {percent(AIM_LATENCY, 0)} of the peer up to L2", missed, compared)


def _missing(report: Report) -> None:
    missing = peers.missing()
    if missing:
        report.text(f"Not installed here, and so not compared: {', '.join(missing)}.")


def _verdict(report: Report, aim: str, missed: Sequence[str], compared: int) -> None:
    """Say what the comparisons come to, if there were any."""
    found = f"met at all {compared}"
    if compared == 0:
        found = "not measured: no peer is installed"
    elif missed:
        found = f"missed at {len(missed)} of {compared}: {'; '.join(missed)}"
    report.text(f"**Verdict.** The aim, {aim}, is {found}.")


if __name__ == "__main__":
    run(main)
