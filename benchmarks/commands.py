"""Every benchmark of the page, in its order, with its time box."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A benchmark as `make benchmarks` runs it."""

    name: str
    words: str  # its module and the options
    minutes: float  # that it takes, about, on two quiet CPUs
    hours: int = 1  # separate ones in which it is to be run; three where the documentation rests on it

    @property
    def line(self) -> str:
        """The whole command."""
        return f"python -m benchmarks.{self.words}"

    @property
    def module(self) -> str:
        """The module alone."""
        return self.words.split()[0]


SIX = "--antagonists stream chase compute gups stencil hashjoin --sharing-every 0"
COMMANDS = (
    Command("truth-native", "truth --minutes 20", 21, hours=3),
    Command("truth-stops", "truth --pay stops --minutes 6", 6.5, hours=3),
    Command("truth-usual", "truth --usual --minutes 15", 16, hours=3),
    Command("truth-job", "truth --lead dlrm-train --losses 0 2 10 --rounds 6 --minutes 11", 12, hours=3),
    Command("truth-spin", "truth --kind spin --minutes 5", 5.5),
    Command("truth-compute", "truth --kind compute --minutes 5", 5.5),
    Command("truth-stream", "truth --kind stream --minutes 5", 5.5),
    Command("heartbeat_cost", "heartbeat_cost", 0.5),
    Command("phase_cost", "phase_cost", 0.5),
    Command("restart_gap", "restart_gap", 1),
    Command("coverage", "coverage", 20),
    Command("noise", "noise --seconds 60 --figure docs/images/noise", 5),
    Command("resolution-chase", f"resolution --lead chase {SIX} --minutes 12", 12, hours=3),
    Command("resolution-dlrm", f"resolution --lead dlrm-train {SIX} --minutes 30", 31, hours=3),
    Command("perturbation", "perturbation --minutes 10", 12, hours=3),
    Command("monitor_cost", "monitor_cost", 3.5),
    Command("counter_ways", "counter_ways", 1.5),
    Command("change_points", "change_points --series 500", 2),
    Command("scale", "scale --launches 2500 5000 10000", 12),
    Command("placement", "placement", 5),
    Command("prediction", "prediction", 30),  # most of them to measure a grid of pairs
    Command("xprof_check", "xprof_check --most 48 results/operations", 1.5),
    Command("trace_rate", "trace_rate", 2),
)
