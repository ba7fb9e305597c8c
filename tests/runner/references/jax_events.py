"""Reads a trace of JAX by JAX's own reader; prints what its steps have: calls by function, instructions, their time.

Nothing of Castmates is here, but for the name of its mark around a step.
"""

import json
import sys
from collections import Counter

from jax.profiler import ProfileData

events = [event for plane in ProfileData.from_file(sys.argv[1]).planes for line in plane.lines for event in line.events]
steps = [(one.start_ns, one.end_ns) for one in events if one.name == "castmates_step"]
calls, begun, work, until = Counter(), Counter(), [], {}
for event in sorted(events, key=lambda one: (one.start_ns, -one.end_ns)):
    if not any(begin <= event.start_ns < end for begin, end in steps):
        continue
    if event.name.startswith("PjitFunction(") and until.get(event.name, 0) <= event.start_ns:
        until[event.name] = event.end_ns  # there is another event in each
        calls[event.name.removeprefix("PjitFunction(").removesuffix(")")] += 1
    if any(key == "hlo_op" for key, _ in event.stats) and not event.name.startswith(("end: ", "while", "call")):
        begun[event.name] += 1
        work.append((event.start_ns, event.end_ns))
covered, last = 0.0, 0.0
for begin, end in sorted(work):
    covered += max(0.0, end - max(begin, last))
    last = max(last, end)
whole = sum(end - begin for begin, end in steps)
print(json.dumps({"steps": len(steps), "calls": calls, "instructions": begun, "work": covered / whole}))
