"""Counters read from inside a Python process, by perf_event_open or by PAPI; standard library only.

from castmates.inside import counting

with counting(["instructions", "page-faults"]) as counts:
    ...
    print(counts.read())
"""

from castmates.inside.counting import Counting, counting, open_counters
from castmates.inside.readings import Counters, Reading, Refusal, Value

__all__ = ["Counters", "Counting", "Reading", "Refusal", "Value", "counting", "open_counters"]
