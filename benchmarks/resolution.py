"""Machine-seconds to a 95 % half-width of 1 %: our launches against the usual way, in turns, on the same mixes.

Also what mixes save that share a launch, and whether the ways agree.
"""

import argparse
import random
from collections.abc import Callable
from itertools import product
from pathlib import Path

from benchmarks import launches, resolution_report, usual
from benchmarks.campaign import Campaign
from benchmarks.common import Report, TimeBox, arguments_of, run, scratch
from castmates.study.model import Study
from castmates.workloads.environments import NATIVE

# Seconds that the usual way looks, and warms up: who waits long for a start may as well look longer then.
NATIVE_LENGTHS = (0.5, 2.0, 8.0)
SLOW_START_LENGTHS = (0.5, 2.0, 8.0, 16.0)
WARM_UPS = (0.05, 1.0)
FIRST_SHARE = 20.0  # seconds of the usual way before our first launch has shown how long one takes


def main() -> None:
    """Measure in turns until the time is over, then print what it came to."""
    options = _options()
    changes = {key: getattr(options, key) for key in ("rounds", "window", "settle")}
    study = launches.study_of(options.budget_of, options.seed, **changes)
    report = Report(f"Resolution: {options.lead} beside {', '.join(options.antagonists)}", "resolution")
    with scratch() as folder:
        campaign = _campaign(study, options, folder)
        box = TimeBox(options.minutes)
        for number in box.portions():
            _portion(campaign, number, box.expected(), options)
        resolution_report.tell(campaign, options.seed, options.aim, report)
    report.print()


def _options() -> argparse.Namespace:
    parser = arguments_of(__doc__, minutes=8)
    parser.add_argument("--lead", default="chase", help="the workload whose loss is studied")
    parser.add_argument("--antagonists", nargs="+", default=["stream", "compute"], help="a mix with each of them")
    parser.add_argument(
        "--budget-of", type=Path, default=Path("config/config.yaml"), help="study that provides the budget"
    )
    parser.add_argument("--rounds", type=int, help="instead of the study's")
    parser.add_argument("--window", type=float, help="seconds, instead of the study's")
    parser.add_argument("--settle", type=float, help="seconds, instead of the study's")
    parser.add_argument("--alone-first", action="store_true", help="also the usual way that does all runs alone first")
    parser.add_argument("--sharing-every", type=int, default=1, help="portions; 0: not at all")
    parser.add_argument("--aim", type=float, help="times fewer machine-seconds; 3, or 10 where the lead is not native")
    return parser.parse_args()


def _campaign(study: Study, options: argparse.Namespace, folder: Path) -> Campaign:
    together = launches.cohort_plan(study, options.lead, options.antagonists, folder)
    single = []
    if options.sharing_every and len(options.antagonists) > 1:
        single = [launches.cohort_plan(study, options.lead, [one], folder) for one in options.antagonists]
    design = together.launches[0].design
    native = together.launches[0].cohort.lead.environment == NATIVE
    choices = [usual.Choice(*one) for one in product(WARM_UPS, NATIVE_LENGTHS if native else SLOW_START_LENGTHS)]
    return Campaign(together, single, usual.Windows(tuple(choices), design.steps, design.longest_window), folder)


def _portion(campaign: Campaign, number: int, expected: int, options: argparse.Namespace) -> None:
    """A launch, and runs of the usual ways that take about as long; for the sharing, a launch of each mix.

    In random order. A turn of the usual way may take several portions, so that the time box can be filled evenly.
    """
    rng = random.Random(f"{options.seed}/{number}")
    arms = list(range(campaign.arms))
    # Alone first: way A goes through its arms once in the whole time, and never back.
    arm = max([min(number * len(arms) // expected, len(arms) - 1), *campaign.apart])

    def way_a() -> None:
        campaign.apart.setdefault(arm, []).extend(campaign.measure_run(arm) for _ in arms)

    def way_b() -> None:
        ours = [one.seconds for one in campaign.ours]
        left = sum(ours) / len(ours) if ours else FIRST_SHARE
        while left > 0:
            left -= campaign.measure_next(rng)

    def together() -> None:
        campaign.ours.append(launches.measure(campaign.plan, number + 1, campaign.folder / "together"))

    def alone(mix: int) -> Callable[[], None]:
        place = campaign.folder / f"alone-{mix}"
        measured = campaign.alone.setdefault(mix, [])
        return lambda: measured.append(launches.measure(campaign.single[mix], number + 1, place))

    parts = [together, way_b, *([way_a] if options.alone_first else [])]
    if options.sharing_every and number % options.sharing_every == 0:
        parts += [alone(mix) for mix in range(len(campaign.single))]
    rng.shuffle(parts)
    for part in parts:
        part()


if __name__ == "__main__":
    run(main)
