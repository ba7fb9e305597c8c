"""Random schedules of threads on two CPUs, written as perf and as ftrace write them, with the states that are true."""

import random
from dataclasses import dataclass, field

from tests.unit.perf_maker import MEMBER, PerfData

START, CPUS, THREADS = 10**12, 2, 5
IDLE = 0
LETTERS = {0: "R+", 1: "S", 2: "D", 0x10: "X"}
State = tuple[int, int, int, str]  # thread, begin, end, name


@dataclass
class Schedule:
    """One schedule as it goes on; times are nanoseconds, events are at least half a microsecond apart."""

    seed: int
    unseen: float = 0.0  # share of wake-ups that no tracer sees, as where others deliver them
    own_switches: bool = False  # perf notes switches in and out itself too, as it does where it follows processes
    perf: PerfData = field(default_factory=lambda: PerfData(events=("sched:sched_switch", "sched:sched_waking")))
    lines: list[str] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    now: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._on = dict.fromkeys(range(CPUS), IDLE)
        self._since: dict[int, tuple[int, str]] = {}  # by thread: its state and since when, once an event has shown it
        self._waits: list[int] = []
        self._blocked = [MEMBER + number for number in range(THREADS)]

    def go(self, steps: int) -> "Schedule":
        """Let so many things happen, and end all states with the last."""
        for _ in range(steps):
            cpu = self._random.randrange(CPUS)
            if self._blocked and (self._random.random() < 0.4 or not (self._on[cpu] or self._waits)):
                self._wake(cpu)
            elif self._on[cpu] or self._waits:
                self._switch(cpu)
        for thread, (since, state) in list(self._since.items()):
            self._since[thread] = since, "blocked" if state == "unknown" else state  # nothing shows that it was woken
            self._becomes(thread, "")
        return self

    def _wake(self, cpu: int) -> None:
        if is_seen := self._random.random() >= self.unseen:
            self._goes_on()
        woken, by, to = self._random.choice(self._blocked), self._on[cpu], self._random.randrange(CPUS)
        self._blocked.remove(woken)
        self._waits.append(woken)
        if not is_seen:
            if woken in self._since:
                self._since[woken] = self._since[woken][0], "unknown"
            return
        self._becomes(woken, "runnable")
        for again in range(self._random.choice((1, 2))):  # the kernel may report it twice
            self.now += 500 * again
            fields = {"pid": woken, "target_cpu": to}
            self.perf.sample("sched:sched_waking", self.now, by, cpu, fields, pid=_process(by))
            self._line(by, cpu, f"sched_waking: comm=t{woken} pid={woken} prio=120 target_cpu={to:03d}")

    def _switch(self, cpu: int) -> None:
        self._goes_on()
        left, state = self._on[cpu], 0
        if left != IDLE:
            state = self._random.choices(list(LETTERS), (4, 4, 2, 0.2))[0]
        came = self._waits.pop(self._random.randrange(len(self._waits))) if self._waits else IDLE
        fields = {"prev_pid": left, "prev_state": state, "next_pid": came}
        self.perf.sample("sched:sched_switch", self.now, left, cpu, fields, pid=_process(left))
        if self.own_switches:
            for thread in filter(None, (left, came)):
                self.perf.switch(self.now, thread, cpu, out=thread == left, preempted=not state)
        names = f"prev_comm=t{left} prev_pid={left} prev_prio=120 prev_state={LETTERS[state]}"
        self._line(left, cpu, f"sched_switch: {names} ==> next_comm=t{came} next_pid={came} next_prio=120")
        self._on[cpu] = came
        if left != IDLE:
            self._becomes(left, {0: "preempted", 0x10: ""}.get(state, "blocked"))
            (self._waits if state == 0 else self._blocked if state != 0x10 else []).append(left)
        if came != IDLE:
            self._becomes(came, "running")

    def _goes_on(self) -> None:
        self.now += 1000 * self._random.randint(1, 50)

    def _becomes(self, thread: int, state: str) -> None:
        if (before := self._since.pop(thread, None)) and before[0] < self.now:
            self.states.append((thread, before[0], self.now, before[1]))
        if state:
            self._since[thread] = self.now, state

    def _line(self, by: int, cpu: int, what: str) -> None:
        at = START + self.now
        self.lines.append(f"  t{by}-{by} [{cpu:03d}] d..2. {at // 10**9}.{at % 10**9:09d}: {what}")


def _process(thread: int) -> int:
    return MEMBER if thread else IDLE
