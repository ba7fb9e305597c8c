"""Our kernels against programs made for the same purpose, in turns: stream's bandwidth and chase's latency.

Peers: likwid-bench and stress-ng (Debian: apt-get install likwid stress-ng), and lat_mem_rd of lmbench (Debian's
non-free). One that is not installed is listed as missing.
"""

import argparse
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks import peers, verdicts
from benchmarks.common import Report, TimeBox, arguments_of, run, say, scratch
from benchmarks.kernels import last_cpu, programs, rate
from benchmarks.verdicts import Aim
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
LATENCY_PEER = "lat_mem_rd"
AIM_RATE = Aim(least=0.95)  # of the best peer's
AIM_LATENCY = Aim(least=0.97, most=1.03)  # of the peer's, up to L2

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
        likwid = peers.Likwid(cpu, options.seconds)
        for number in TimeBox(options.minutes).portions():
            say(f"round {number + 1}")
            _round_of_rates(chance, ours, likwid, rates)
            _round_of_latencies(ours, cpu, latencies)
    describe_rates(report, rates)
    describe_latencies(report, latencies)
    report.print()


def _options() -> argparse.Namespace:
    parser = arguments_of(__doc__, minutes=8)
    parser.add_argument(
        "--seconds", type=float, default=0.5, help="length of one run of our kernels and of likwid-bench"
    )
    return parser.parse_args()


def _nothing() -> Found:
    return defaultdict(lambda: defaultdict(list))


def peers_of_mode(root: Path = Path("/")) -> dict[str, tuple[str, ...]]:
    """likwid-bench's tests for each of our modes, as far as the processor has their instructions."""
    wide = "avx512f" in read_pairs(root / "proc/cpuinfo").get("flags", "").split()
    return {mode: (*tests, *(AVX512_PEERS[mode] if wide else ())) for mode, tests in PEERS_OF_MODE.items()}


def _round_of_rates(
    chance: random.Random, ours: Callable[[Sequence[str]], float], likwid: peers.Likwid, found: Found
) -> None:
    """All contenders at each size, in random order, in GB/s."""
    for mode, tests in peers_of_mode().items():
        for size, amount in SET_SIZES.items():
            command = ["stream", "--mode", mode, "--bytes", str(amount)]
            contenders: dict[str, Callable[[], float | None]] = {
                OURS: lambda command=command: ours(command) * MIB / 1e9,  # type: ignore[misc]
                **{test: partial(likwid.rate, test, amount) for test in tests},
            }
            if mode == "triad":
                contenders["stress-ng stream"] = partial(peers.stress_ng_stream, amount, likwid.cpu)
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
                    found["chase", size][LATENCY_PEER].append(ladder[amount])


def describe_rates(report: Report, found: Found) -> None:
    """Ours beside the best peer, by round."""
    report.text(
        "GB/s (10^9 bytes of the instructions, without the lines that are fetched before they are written), one "
        "thread, median of the rounds; in each, all contenders of a row took turns in random order, a new process "
        "each. `stress-ng stream` is the mean of its copy, scale, add and triad. The best peer is chosen with the "
        "figures in hand, which favours it."
    )
    rows = []
    for (mode, size), values in found.items():
        peers_here = {name: rates for name, rates in values.items() if name != OURS and len(rates) == len(values[OURS])}
        medians = {name: statistics.median(rates) for name, rates in peers_here.items()}
        listed = ", ".join(f"{name} {value:.2f}" for name, value in medians.items()) or "none"
        amount, rounds = f"{size}, {SET_SIZES[size]:,} bytes", str(len(values[OURS]))
        rows.append([mode, amount, rounds, f"{statistics.median(values[OURS]):.2f}", listed])
        if medians:
            best = max(medians, key=lambda name: medians[name])
            shares = [ours / theirs for ours, theirs in zip(values[OURS], values[best], strict=True)]
            report.found(verdicts.ratio(f"{mode} in {size}, of {best}", shares, "rounds", AIM_RATE))
    report.table(["mode", "working set", "rounds", "ours", "peers"], rows)
    if missing := peers.missing():
        report.text(f"Not installed here, and so not compared: {', '.join(missing)}.")


def describe_latencies(report: Report, found: Found) -> None:
    """Ours beside the peer, by round."""
    report.text(
        "ns a load, one chain, median of the rounds; the peer (`lat_mem_rd -t`: random order, lines of 64 bytes) ran "
        "between two runs of ours. Beyond L2 the cache is shared with antagonists that we cannot see, so there is no "
        "aim."
    )
    rows = []
    for (_, size), values in found.items():
        ours, peer = statistics.median(values[OURS]), values.get(LATENCY_PEER)
        rows.append([f"{size}, {CHASE_SIZES[size] >> 10} KiB", f"{ours:.3f}"])
        rows[-1].append(f"{statistics.median(peer):.3f}" if peer else "–")
        if peer:
            around = zip(values[OURS][::2], values[OURS][1::2], peer, strict=True)
            ratios = [(before + after) / 2 / theirs for before, after, theirs in around]
            aim = AIM_LATENCY if size.startswith("L") else None
            report.found(verdicts.ratio(f"ns a load in {size}, of {LATENCY_PEER}", ratios, "rounds", aim))
    report.table(["working set", "ours", LATENCY_PEER], rows)


if __name__ == "__main__":
    run(main)
