"""What a launch does after its rounds: it measures what its collectors cost, and profiles its lead."""

from castmates.protocols import Say
from castmates.runner.after_rounds import collector_costs, profiling
from castmates.runner.outcome import Measured
from castmates.runner.processes.launch import WorkloadFailed
from castmates.runner.rounds.stage import Stage
from castmates.workloads.heartbeat import HeartbeatError, State


def measure_after_rounds(outcome: Measured, stage: Stage, say: Say) -> None:
    """Measure costs and profile; a member that is lost there, unless it found its result wrong, loses no rounds."""
    try:
        collector_costs.measure_costs(outcome, stage, say)
        profiling.profile(outcome, stage, say)
    except (WorkloadFailed, HeartbeatError) as failure:
        if any(process.reader.state is State.FAILED for process in outcome.cast):
            raise
        outcome.afterwards = str(failure)
        say(f"the rounds count, but what comes after them was cut short: {failure}")
