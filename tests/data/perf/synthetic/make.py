"""Writes prints that no public source gave us: the shape is perf's and toplev's own, every number is made up.

usage: make.py, in this folder.

- zen4-smt.json.txt: PipelineL1 and PipelineL2 of an AMD Zen 4 whose SMT sibling is busy, as perf 6.5 and later print
  them; names and order as in perf's metrics of that processor. The shares are drawn so that they add up.
- perf-6.1-metrics.json.txt: the metrics of -M TopdownL1 as perf 6.1 prints them: numbers without quotes.
- metric-only.json.txt: --metric-only, as perf 6.2 and later print it.
- toplev.csv: toplev's -x, with the heading of its version 4 and later; toplev-old.csv: without a heading, as version 3.
"""

import random
from pathlib import Path

HERE = Path(__file__).parent


def parts(dice: random.Random, whole: float, count: int) -> list[float]:
    """Cut a whole into so many parts that add up to it, of four decimals."""
    cuts = sorted(round(dice.random() * whole, 4) for _ in range(count - 1))
    return [round(b - a, 4) for a, b in zip([0.0, *cuts], [*cuts, whole], strict=True)]


def zen4(dice: random.Random) -> str:
    frontend, speculation, retiring, backend, smt = parts(dice, 100.0, 5)
    lines = []
    families = (
        ("de_src_op_disp.all", "bad_speculation", speculation,
         ("bad_speculation_mispredicts", "bad_speculation_pipeline_restarts")),
        ("de_no_dispatch_per_slot.no_ops_from_frontend", "frontend_bound", frontend,
         ("frontend_bound_latency", "frontend_bound_bandwidth")),
        ("de_no_dispatch_per_slot.backend_stalls", "backend_bound", backend,
         ("backend_bound_memory", "backend_bound_cpu")),
        ("ex_ret_ops", "retiring", retiring, ("retiring_fastpath", "retiring_microcode")),
        ("de_no_dispatch_per_slot.smt_contention", "smt_contention", smt, ()),
    )  # fmt: skip
    for event, name, share, below in families:
        count, runtime = dice.randrange(10**8, 10**10), dice.randrange(10**8, 10**9)
        lines.append(
            f'{{"counter-value" : "{count}.000000", "unit" : "", "event" : "{event}", "event-runtime" : {runtime}, '
            f'"pcnt-running" : 100.00, "metric-value" : "{share:.6f}", "metric-unit" : "%  {name}"}}'
        )
        for child, value in zip(below, parts(dice, share, 2), strict=False):
            lines.append(f'{{"metric-value" : "{value:.6f}", "metric-unit" : "%  {child}"}}')
    return "\n".join(lines) + "\n"


def perf61(dice: random.Random) -> str:
    names = ("tma_frontend_bound", "tma_bad_speculation", "tma_retiring", "tma_backend_bound")
    first, *rest = zip(names, parts(dice, 100.0, 4), strict=True)
    head = (
        '{"counter-value" : "812345678.000000", "unit" : "", "event" : "topdown-retiring", "event-runtime" : 49876543, '
        f'"pcnt-running" : 87.00, "metric-value" : {first[1]:f}, "metric-unit" : "%  {first[0]}"}}'
    )
    return "\n".join([head, *(f'{{"metric-value" : {v:f}, "metric-unit" : "%  {n}"}}' for n, v in rest)]) + "\n"


def metric_only(dice: random.Random) -> str:
    names = ("tma_frontend_bound", "tma_bad_speculation", "tma_retiring", "tma_backend_bound")
    pairs = ", ".join(f'"%  {n}" : "{v:.1f}"' for n, v in zip(names, parts(dice, 100.0, 4), strict=True))
    return f'{{{pairs}, "GHz" : "none"}}\n'


def toplev(dice: random.Random, old: bool) -> str:
    names = ["Frontend_Bound", "Bad_Speculation", "Backend_Bound", "Retiring"]
    below = {"Frontend_Bound": ("Fetch_Latency", "Fetch_Bandwidth"),
             "Bad_Speculation": ("Branch_Mispredicts", "Machine_Clears"),
             "Backend_Bound": ("Memory_Bound", "Core_Bound"),
             "Retiring": ("Light_Operations", "Heavy_Operations")}  # fmt: skip
    rows = [] if old else ["Timestamp,CPUs,Area,Value,Unit,Description,Sample,Stddev,Multiplex,Bottleneck,Idle"]
    rows.append("# 3.5-full on Synthetic(R) CPU" if old else "# 4.8-full on Synthetic(R) CPU")
    for second in (1, 2):
        for name, share in zip(names, parts(dice, 100.0, 4), strict=True):
            for area, value in ((name, share), *((f"{name}.{child}", one) for child, one in
                                zip(below[name], parts(dice, share, 2), strict=True))):  # fmt: skip
                low = "% Slots" if value > 15 else "% Slots <"
                tail = ",,,0.00,98.50," if old else ",,,0.0,98.5,,"
                rows.append(f"{second}.00079{second}821,{'S0-C0' if old else 'C0'},{area},{value:.2f},{low}{tail}")
        rows.append(
            f"{second}.00079{second}821,{'S0-C0-T0' if old else 'C0-T0'},MUX,98.50,%,,,0.00,100.0,"
            + ("" if old else ",")
        )
    return "\n".join(rows) + "\n"


def main() -> None:
    dice = random.Random(6)
    made = {"zen4-smt.json.txt": zen4(dice), "perf-6.1-metrics.json.txt": perf61(dice),
            "metric-only.json.txt": metric_only(dice), "toplev.csv": toplev(dice, False),
            "toplev-old.csv": toplev(dice, True)}  # fmt: skip
    for name, text in made.items():
        (HERE / name).write_text(text)


if __name__ == "__main__":
    main()
