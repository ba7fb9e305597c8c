"""The named queries once more, from what docs/tracing-query.md promises: plain loops over the tables, and no SQL."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pandas as pd

NAN = float("nan")
SECOND, MS = 1e9, 1e6
ALONE = ("alone", "alone-again", "placebo")
KEYS = {  # columns that name a row; all others are numbers
    "counts-by-operation": ["scene", "member", "operation", "event"],
    "faults": ["scene", "member", "name", "detail"],
    "heartbeats": ["scene", "member"],
    "interrupts": ["scene", "member", "cpu", "kind", "name"],
    "intervals": ["t0_ns", "t1_ns", "track", "state", "thread", "tid", "member", "cpu", "scene"],
    "locks": ["scene", "member", "thread", "state", "operation", "woken_by"],
    "lost": ["source", "reason"],
    "members": ["scene", "member", "state", "reason"],
    "migrations": ["scene", "member", "from_cpu", "to_cpu"],
    "operation-states": ["scene", "member", "operation", "type", "state", "reason"],
    "phases": ["scene", "member", "part", "reading", "unit"],
    "pools": ["scene", "member", "pool"],
    "ran-instead": ["scene", "member", "state", "ran_instead"],
    "run-queue": ["scene", "member"],
    "slowest-steps": ["scene", "member", "step", "source"],
    "syscalls": ["scene", "member", "name"],
    "time-on-cpu": ["scene", "member", "thread", "tid", "state", "reason"],
}


class Reference:
    """The answers to all named queries over one timeline."""

    def __init__(self, timeline):
        self.about = timeline.about
        tracks = timeline.tracks.set_index("track")
        of_track = {"member": "member", "thread": "name", "tid": "tid", "on": "kind", "cpu_of_track": "cpu"}

        def joined(table):
            found = table.astype(
                {name: "object" for name in table if isinstance(table[name].dtype, pd.CategoricalDtype)}
            )
            for name, column in of_track.items():
                found[name] = tracks[column].reindex(found["track"]).astype("object").to_numpy()
            return found

        self.intervals, self.instants = joined(timeline.intervals), joined(timeline.instants)
        self.samples = joined(timeline.samples)
        ends = [
            timeline.intervals[["t0_ns", "t1_ns"]],
            *(each[["t_ns"]] for each in (timeline.instants, timeline.samples)),
        ]
        ends += [timeline.stacks[["t_ns"]]]
        self.origin = min(int(each.min().min()) for each in ends if len(each))
        self.end = max(int(each.max().max()) for each in ends if len(each))
        self.lead = self.about.get("lead") or ""
        self.members = [each for each in dict.fromkeys(tracks["member"].astype(str)) if each]
        self.recordings = self._recordings()
        whole = sorted(set(self._kind("whole")[["t0_ns", "t1_ns"]].itertuples(index=False, name=None)))
        self.seen = [
            (scene, max(t0, first), min(t1, last))
            for scene, t0, t1 in self.recordings
            for first, last in whole or [(t0, t1)]
            if first < t1 and last > t0
        ]
        scenes = list(dict.fromkeys(scene for scene, _, _ in self.recordings))
        self.seconds = {scene: self._time(self.recordings, scene) for scene in scenes}
        self.seen_seconds = {scene: self._time(self.seen, scene) or NAN for scene in scenes}
        rates = {scene: self._progress(scene, self.lead, self.seen) for scene in scenes}
        self.seen_steps = {scene: self.seen_seconds[scene] * (rates[scene] or (NAN, NAN, NAN))[2] for scene in scenes}
        alone = "alone" if "alone" in scenes else None
        others = [scene for scene in scenes if scene != "alone"] or scenes
        self.comparisons = [(scene, alone) for scene in others]
        self.states = self._states()
        self.of_track = {
            track: (own["t0_ns"].tolist(), own["t1_ns"].tolist(), list(zip(own["state"], own["reason"], strict=True)))
            for track, own in self.states.sort_values("t0_ns").groupby("track")
        }
        self.steps = self._steps()
        self.operations = self._kind("operation")
        self.operations["scene"] = self._inside(self.operations)

    # What there is

    def _kind(self, *kinds):
        return self.intervals[self.intervals["kind"].isin(kinds)].copy()

    def _recordings(self):
        scenes = list(self._kind("scene")[["name", "t0_ns", "t1_ns"]].itertuples(index=False, name=None))
        found = []
        for name, t0, t1 in self._kind("recording")[["name", "t0_ns", "t1_ns"]].itertuples(index=False, name=None):
            around = [scene for scene, first, last in scenes if first <= (t0 + t1) // 2 < last]
            found.append((around[0] if around else name, t0, t1))
        return sorted(found or scenes or [("", self.origin, self.end)], key=lambda each: each[1])

    @staticmethod
    def _time(spans, scene):
        return sum(t1 - t0 for name, t0, t1 in spans if name == scene) / SECOND

    def _inside(self, rows):
        """The scene in whose recording each row lies whole; None for others."""
        pairs = rows[["t0_ns", "t1_ns"]].itertuples(index=False, name=None)
        whole = ([s for s, first, last in self.recordings if first <= t0 and t1 <= last] for t0, t1 in pairs)
        return np.array([found[0] if found else None for found in whole], dtype=object)

    def _at(self, table, kind, spans):
        """The moments of a kind that lie in spans, with their scene."""
        rows = table[table["kind"] == kind] if kind else table
        parts = [rows[(rows["t_ns"] >= t0) & (rows["t_ns"] < t1)].assign(scene=scene) for scene, t0, t1 in spans]
        return pd.concat(parts)

    def _states(self):
        parts = []
        states = self._kind("state")
        for scene, first, last in self.seen:
            own = states[(states["t1_ns"] > first) & (states["t0_ns"] < last)].copy()
            own["begins"], own["ends"] = own["t0_ns"] > first, own["t1_ns"] < last
            own["t0_ns"], own["t1_ns"] = own["t0_ns"].clip(lower=first), own["t1_ns"].clip(upper=last)
            parts.append(own.assign(scene=scene))
        found = pd.concat(parts).rename(columns={"name": "state"})
        found["ms"] = (found["t1_ns"] - found["t0_ns"]) / MS
        found["reason"] = np.where(found["state"].isin(["blocked", "unknown"]), found["detail"], "")
        return found

    def _marks(self, member):
        """Moments, and the progress by then."""
        beats = self.instants[(self.instants["kind"] == "heartbeat") & (self.instants["member"] == member)]
        if len(beats) > 1:
            count = beats["value"].to_numpy(float)
            return beats["t_ns"].to_numpy(float), np.arange(len(beats)) if np.isnan(count).any() else count
        own = self._kind("step")
        own = own[(own["member"] == member) & (own["depth"] == 0)]
        times = [*own["t0_ns"], *([own["t1_ns"].max()] if len(own) else [])]
        return np.array(times, float), np.arange(len(times))

    def _progress(self, scene, member, spans):
        """Units, seconds and rate of a member in a scene; None where nothing shows them."""
        if scene.partition(":")[0].partition("@")[0] in ALONE and self.lead and member != self.lead:
            return None
        at, count = self._marks(member)
        if len(at) < 2:
            return None
        known = [(max(t0, at[0]), min(t1, at[-1])) for name, t0, t1 in spans if name == scene]
        known = [(t0, t1) for t0, t1 in known if t0 < t1]
        seconds = sum(t1 - t0 for t0, t1 in known) / SECOND
        units = sum(np.interp(t1, at, count) - np.interp(t0, at, count) for t0, t1 in known)
        return (units, seconds, units / seconds) if units > 0 else None

    def _steps(self):
        """Steps that lie whole in a recording: member, t0_ns, t1_ns, step, source, scene."""
        rows = []
        for member in self.members:
            beats = self.instants[(self.instants["kind"] == "heartbeat") & (self.instants["member"] == member)]
            if len(beats) > 1:
                cells = list(beats[["t_ns", "value"]].itertuples(index=False, name=None))
                rows += [(member, t0, t1, step, "heartbeat") for (t0, _), (t1, step) in pairwise(cells)]
            else:
                own = self._kind("step")
                own = own[own["member"] == member]
                rows += own[["member", "t0_ns", "t1_ns", "value", "source"]].itertuples(index=False, name=None)
        found = pd.DataFrame(rows, columns=["member", "t0_ns", "t1_ns", "step", "source"])
        found["scene"] = self._inside(found)
        return found[found["scene"].notna()]

    def _in_states(self, track, t0, t1):
        """Nanoseconds of a track by state and reason in a span; the rest is unknown."""
        begins, ends, keys = self.of_track.get(track, ([], [], []))
        found = defaultdict(int)
        for place in range(bisect_right(ends, t0), bisect_left(begins, t1)):
            found[keys[place]] += min(t1, ends[place]) - max(t0, begins[place])
        if rest := t1 - t0 - sum(found.values()):
            found["unknown", ""] += rest
        return found

    def _per(self, scene, amount):
        return {"per_s": amount / self.seen_seconds[scene], "per_step": amount / self.seen_steps[scene]}

    # The queries

    def answer(self, name):
        """The rows of a named query with its usual parameters."""
        return pd.DataFrame(list(getattr(self, "_" + name.replace("-", "_"))()))

    def _faults(self):
        found = self._at(self.instants, "fault", self.seen)
        for keys, rows in found.groupby(KEYS["faults"]):
            count = {"faults": len(rows), **self._per(keys[0], len(rows)), "threads": rows["tid"].nunique()}
            yield dict(zip(KEYS["faults"], keys, strict=True)) | count

    def _counts_by_operation(self):
        steps = self._kind("step").to_dict("records")
        steps = [(s, one) for one in steps for s, t0, t1 in self.seen if t0 <= one["t0_ns"] and one["t1_ns"] <= t1]
        many, found, period = defaultdict(int), defaultdict(int), {}
        for scene, step in steps:
            many[scene, step["member"]] += 1
        for kind in ("fault", "count"):
            for one in self._at(self.instants, kind, self.seen).to_dict("records"):
                at, member = one["t_ns"], one["member"]
                own = self.operations[self.operations["track"] == one["track"]]
                own = own[(own["t0_ns"] <= at) & (at < own["t1_ns"])].sort_values("depth")
                part = own["name"].iloc[-1] if len(own) else "outside of operations"
                event, stands_for = ("page-faults", 1) if kind == "fault" else (one["name"], one["value"])
                for scene, step in steps:
                    if step["member"] == member and step["t0_ns"] <= at < step["t1_ns"]:
                        found[scene, member, part, event] += 1
                        period[member, part, event] = stands_for
        for scene, alone in self.comparisons:
            for key, stands_for in period.items():
                names = dict(zip(KEYS["counts-by-operation"], (scene, *key), strict=True))
                row = {"difference": NAN, "difference_low": NAN, "difference_high": NAN}
                for side, where in (("alone", alone), ("beside", scene)):
                    n, per = found[where, *key], many[where, key[0]]
                    low, high = (n, n) if stands_for == 1 else (_limit(n, -1.959964), _limit(n + 1, 1.959964))
                    values = (each * stands_for / per if per else NAN for each in (n, low, high))
                    row |= dict(zip((side, f"{side}_low", f"{side}_high"), values, strict=True))
                    row[f"{side}_steps"] = per or NAN
                apart = row["beside"] - row["alone"]
                less = np.hypot(row["beside"] - row["beside_low"], row["alone_high"] - row["alone"])
                more = np.hypot(row["beside_high"] - row["beside"], row["alone"] - row["alone_low"])
                yield names | row | {
                    "difference": apart, "difference_low": apart - less, "difference_high": apart + more,
                }  # fmt: skip

    def _migrations(self):
        found = self._at(self.instants, "migration", self.seen)
        found["from_cpu"] = [int(words.split("->")[0][3:]) for words in found["detail"]]
        found["to_cpu"] = [int(words.split("->")[1][3:]) for words in found["detail"]]
        for keys, rows in found.groupby(KEYS["migrations"]):
            count = {"migrations": len(rows), **self._per(keys[0], len(rows)), "threads": rows["tid"].nunique()}
            yield dict(zip(KEYS["migrations"], keys, strict=True)) | count

    def _heartbeats(self):
        for scene, alone in self.comparisons:
            for member in self.members:
                beside = self._progress(scene, member, self.recordings)
                own = self._progress(alone, member, self.recordings) if alone else None
                if beside or own:
                    first, second = own or (NAN,) * 3, beside or (NAN,) * 3
                    rates = {"alone_per_s": first[2], "beside_per_s": second[2], "ratio": second[2] / first[2]}
                    yield {
                        "scene": scene,
                        "member": member,
                        **rates,
                        "alone_units": first[0],
                        "beside_units": second[0],
                    }

    def _begun(self, *kinds):
        """What began in the stretches, cut at their ends."""
        rows = self._kind(*kinds)
        rows = rows[(rows["depth"] == 0) | (rows["kind"] != "syscall")]
        rows = rows[rows["detail"] != "began before"]
        parts = [
            rows[(rows["t0_ns"] >= t0) & (rows["t0_ns"] < t1)].assign(scene=s, until=t1) for s, t0, t1 in self.seen
        ]
        found = pd.concat(parts)
        found["ms"] = (np.minimum(found["t1_ns"], found["until"]) - found["t0_ns"]) / MS
        return found

    def _interrupts(self):
        found = self._begun("irq", "softirq")
        found["cpu"] = found["cpu"].astype("object").where(found["cpu"].notna(), found["cpu_of_track"])
        for keys, rows in found.groupby(KEYS["interrupts"]):
            time = {
                "us_per_s": rows["ms"].sum() * 1000 / self.seen_seconds[keys[0]],
                "longest_us": rows["ms"].max() * 1000,
            }
            count = {"interrupts": len(rows), "per_s": len(rows) / self.seen_seconds[keys[0]]}
            yield dict(zip(KEYS["interrupts"], keys, strict=True)) | count | time

    def _syscalls(self):
        found = self._begun("syscall")
        for keys, rows in found.groupby(KEYS["syscalls"]):
            per, failed = self._per(keys[0], rows["ms"].sum()), (rows["value"] < 0) & (rows["value"] >= -4095)
            yield dict(zip(KEYS["syscalls"], keys, strict=True)) | {
                "calls": len(rows), "calls_per_s": len(rows) / self.seen_seconds[keys[0]],
                "ms_per_s": per["per_s"], "ms_per_step": per["per_step"], "mean_us": rows["ms"].mean() * 1000,
                "longest_us": rows["ms"].max() * 1000, "failed": int(failed.sum()),
            }  # fmt: skip

    def _intervals(self):
        for row in self.states.to_dict("records"):
            words = f"{row['state']}:{row['reason']}" if row["reason"] else row["state"]
            yield {name: row[name] for name in KEYS["intervals"]} | {"state": words}

    def _locks(self):
        waits = self.states[self.states["state"].isin(["blocked", "unknown"]) & (self.states["reason"] == "futex")]
        wakes = self.instants[self.instants["kind"] == "wakeup"]
        ops, rows = self.operations[self.operations["scene"].notna()], []
        for wait in waits.to_dict("records"):
            around = ops[
                (ops["track"] == wait["track"]) & (ops["t0_ns"] < wait["t1_ns"]) & (ops["t1_ns"] > wait["t0_ns"])
            ]
            ended = wakes[(wakes["track"] == wait["track"]) & (wakes["t_ns"] == wait["t1_ns"])]
            ended = ended[[wait["state"] == "blocked"] * len(ended)]
            operation = around.sort_values("depth")["name"].iloc[-1] if len(around) else ""
            rows.append(
                wait | {"operation": operation, "woken_by": ended["detail"].iloc[0] if len(ended) else "not known"}
            )
        for keys, own in pd.DataFrame(rows, columns=[*waits, "operation", "woken_by"]).groupby(KEYS["locks"]):
            per = self._per(keys[0], own["ms"].sum())
            yield dict(zip(KEYS["locks"], keys, strict=True)) | {
                "waits_per_s": own["begins"].sum() / self.seen_seconds[keys[0]], "ms_per_s": per["per_s"],
                "ms_per_step": per["per_step"], "longest_ms": own["ms"].max(),
            }  # fmt: skip

    def _lost(self):
        for source in self.about.get("sources", []):
            events = source.get("events")
            events = sum(events.values()) if isinstance(events, dict) else events
            events, lost = (NAN if each is None else each for each in (events, source.get("lost")))
            share = lost / (events + lost) if events + lost else NAN
            align, size = (NAN if source.get(each) is None else source[each] for each in ("alignment_ns", "bytes"))
            if source.get("reason") and not events > 0:  # it never ran: nothing is known of what it lost
                lost = align = NAN
            yield {
                "source": source["name"], "reason": source.get("reason") or "", "events": events, "lost": lost,
                "share_lost": share, "bytes": size, "alignment_us": align / 1000,
            }  # fmt: skip

    def _compared(self, cells, whole):
        """Both sides of each comparison. `cells` are (scene, key, value); of a key whose first `whole` parts have no
        cell on a side, that side is not known; otherwise what is missing is 0."""
        sums, known = defaultdict(float), set()
        for scene, key, value in cells:
            sums[scene, key] += value
            known |= {(scene, key[:whole])} if value == value else set()
        for scene, alone in self.comparisons:
            for key in dict.fromkeys(key for side, key in sums if side in (scene, alone)):
                yield (
                    scene,
                    key,
                    *(sums.get((s, key), 0.0) if (s, key[:whole]) in known else NAN for s in (alone, scene)),
                )

    def _members(self):
        rows = self.states[["scene", "member", "state", "reason", "ms"]].to_dict("records")
        each = [(row["scene"], (row["member"], row["state"], row["reason"]), row["ms"]) for row in rows]
        second = self._compared([(s, key, ms / self.seen_seconds[s]) for s, key, ms in each], 1)
        step = self._compared([(s, key, ms / self.seen_steps[s]) for s, key, ms in each], 1)
        for (scene, key, alone, beside), (*_, own, other) in zip(second, step, strict=True):
            names = dict(zip(KEYS["members"], (scene, *key), strict=True))
            times = {"alone_ms_per_s": alone, "beside_ms_per_s": beside}
            yield names | times | {"alone_ms_per_step": own, "beside_ms_per_step": other}

    def _time_on_cpu(self):
        rows = self.states[["scene", "member", "thread", "tid", "state", "reason", "ms"]].to_dict("records")
        cells = [(row["scene"], tuple(row.values())[1:-1], row["ms"] / self.seen_seconds[row["scene"]]) for row in rows]
        for scene, key, alone, beside in self._compared(cells, 3):
            times = {"alone_ms_per_s": alone, "beside_ms_per_s": beside, "difference": beside - alone}
            yield dict(zip(KEYS["time-on-cpu"], (scene, *key), strict=True)) | times

    def _operation_states(self):
        whole = self.operations[self.operations["scene"].notna()]
        calls, cells = defaultdict(int), []
        for op in whole.to_dict("records"):
            calls[op["scene"], op["member"], op["name"], op["detail"]] += 1
        for op in whole.to_dict("records"):
            key = op["member"], op["name"], op["detail"]
            parts = self._in_states(op["track"], op["t0_ns"], op["t1_ns"])
            cells += [(op["scene"], (*key, *state), ns / MS / calls[op["scene"], *key]) for state, ns in parts.items()]
        for scene, key, alone, beside in self._compared(cells, 3):
            many = {
                "alone_calls": calls.get((dict(self.comparisons)[scene], *key[:3]), NAN),
                "beside_calls": calls.get((scene, *key[:3]), NAN),
            }
            times = {"alone_ms_per_call": alone, "beside_ms_per_call": beside, "difference": beside - alone}
            yield dict(zip(KEYS["operation-states"], (scene, *key), strict=True)) | many | times

    def _phases(self):
        phases = self._kind("phase").assign(part=lambda rows: rows["name"])
        phases["scene"] = self._inside(phases)
        parts = pd.concat([phases[phases["scene"].notna()], self.steps.assign(part="step")])
        readings = self._at(self.samples, "", self.recordings)
        counted = (readings["source"] == "counters") & (readings["unit"] == "")  # so far, of which a mean shows nothing
        readings = readings[(readings["on"] == "member") & ~counted]
        readings = readings.merge(self._since(), on=["track", "name", "unit", "source", "t_ns"])
        times, means, every = {}, defaultdict(list), {}
        kinds = {
            "running": "running",
            "runnable": "waiting for a CPU",
            "preempted": "waiting for a CPU",
            "unknown": "not known",
        }
        pairs = zip(self.states["member"], self.states["state"], strict=True)
        there = {(member, kinds[state]) for member, state in pairs if state in kinds}
        for key, rows in parts.groupby(["scene", "member", "part"]):
            times[key] = len(rows), (rows["t1_ns"] - rows["t0_ns"]).mean() / MS
            spans = list(rows[["t0_ns", "t1_ns"]].itertuples(index=False, name=None))
            own = readings[(readings["member"] == key[1]) & (readings["scene"] == key[0])]
            for t, since, name, unit, value in own[["t_ns", "since", "name", "unit", "value"]].itertuples(
                index=False, name=None
            ):
                if any(t0 <= since and t <= t1 for t0, t1 in spans):
                    means[*key, name, unit].append(value)
                means[*key, name, unit] += []
            own = self.states[(self.states["member"] == key[1]) & (self.states["scene"] == key[0])]
            spans = [span for span in spans if any(t0 <= span[0] and span[1] <= t1 for _, t0, t1 in self.seen)]
            for name in {name for member, name in there if member == key[1]} if len(own) and spans else ():
                states = own[own["state"].map(kinds) == name]
                ns = sum(
                    (np.minimum(states["t1_ns"], t1) - np.maximum(states["t0_ns"], t0)).clip(lower=0).sum()
                    for t0, t1 in spans
                )
                every[*key, name, "threads"] = ns / sum(t1 - t0 for t0, t1 in spans), len(spans)
        for key, values in means.items():
            every[key] = np.mean(values) if len(values) >= 3 else NAN, len(values)
        for scene, alone in self.comparisons:
            for member, part in dict.fromkeys(key[1:] for key in times if key[0] in (scene, alone)):
                read = dict.fromkeys(key[3:] for key in every if key[1:3] == (member, part)) or [("", "")]
                for name, unit in read:
                    row = {"scene": scene, "member": member, "part": part, "reading": name, "unit": unit}
                    for side, where in (("alone", alone), ("beside", scene)):
                        many, ms = times.get((where, member, part), (NAN, NAN))
                        value, count = every.get((where, member, part, name, unit), (NAN, NAN))
                        row |= {f"{side}_times": many, f"{side}_ms": ms, f"{side}_readings": count, side: value}
                    yield row

    def _since(self):
        """Of each reading, when the reading before it was taken."""
        of = ["track", "name", "unit", "source"]
        found = self.samples[[*of, "t_ns"]].sort_values("t_ns")
        return found.assign(since=found.groupby(of)["t_ns"].shift().astype("float64"))

    def _pools(self):
        threads = self.states[["member", "track", "thread", "tid"]].drop_duplicates().copy()
        threads["pool"] = [re.sub(r"[\W_]*\d+$", "", name) or name for name in threads["thread"]]
        kinds = {"runnable": "waiting_for_cpu", "preempted": "waiting_for_cpu"}
        for (scene, member), steps in self.steps.groupby(["scene", "member"]):
            time = (steps["t1_ns"] - steps["t0_ns"]).sum()
            for pool, own in threads[threads["member"] == member].groupby("pool"):
                found = dict.fromkeys(("running", "waiting_for_cpu", "blocked", "unknown"), 0.0)
                for track in own["track"]:
                    last = max(self.of_track[track][1])
                    ended = np.inf if any(last == t1 for _, _, t1 in self.seen) else last
                    for t0, t1 in steps[["t0_ns", "t1_ns"]].itertuples(index=False, name=None):
                        t1 = min(t1, ended)
                        for (state, _), ns in self._in_states(track, t0, t1).items() if t0 < t1 else ():
                            found[kinds.get(state, state)] += ns / time
                many = {"threads": own["tid"].nunique(), "steps": len(steps)}
                yield {"scene": scene, "member": member, "pool": pool} | many | found

    def _ran_instead(self):
        waits = self.states[self.states["state"].isin(["runnable", "preempted"])].copy()
        words = {"": "not known", "unknown": "not known", "idle": "nobody: the CPU was idle"}
        waits["ran_instead"] = [words.get(detail, detail) for detail in waits["detail"]]
        for keys, rows in waits.groupby(KEYS["ran-instead"]):
            per = self._per(keys[0], rows["ms"].sum())
            yield dict(zip(KEYS["ran-instead"], keys, strict=True)) | {
                "ms_per_s": per["per_s"], "ms_per_step": per["per_step"], "longest_ms": rows["ms"].max(),
                "times_per_s": rows["begins"].sum() / self.seen_seconds[keys[0]],
            }  # fmt: skip

    def _run_queue(self):
        wakes = self._at(self.instants, "wakeup", self.seen)
        waits = self.states[(self.states["state"] == "runnable") & self.states["begins"] & self.states["ends"]]
        latency = {(row.track, row.t0_ns): row.ms * 1000 for row in waits.itertuples()}
        wakes["us"] = [latency.get(at, NAN) for at in zip(wakes["track"], wakes["t_ns"], strict=True)]
        whole = self.states[self.states["begins"] & self.states["ends"]]
        unwoken = whole[(whole["state"] == "unknown") & (whole["reason"] != "")]
        for scene, member in dict.fromkeys(
            [*wakes.groupby(KEYS["run-queue"]).groups, *unwoken.groupby(KEYS["run-queue"]).groups]
        ):
            rows = wakes[(wakes["scene"] == scene) & (wakes["member"] == member)]
            known = rows["us"].dropna()
            shares = {f"p{share}_us": known.quantile(share / 100) for share in (50, 95, 99)}
            waits = len(known) + int(((unwoken["scene"] == scene) & (unwoken["member"] == member)).sum())
            many = {"wakeups_per_s": len(rows) / self.seen_seconds[scene], "with_latency": len(known)}
            many |= {"waits": waits, "seen": len(known) / waits if waits else NAN}
            yield {"scene": scene, "member": member, "max_us": known.max()} | many | shares

    def _slowest_steps(self):
        steps = self.steps.assign(ms=(self.steps["t1_ns"] - self.steps["t0_ns"]) / MS)
        for _, rows in steps.groupby(["scene", "member", "source"]):
            usual = rows["ms"].median()
            for step in rows.sort_values(["ms", "t0_ns"], ascending=[False, True])[:20].to_dict("records"):
                found = defaultdict(int)
                for track in self.states[self.states["member"] == step["member"]]["track"].unique():
                    for (state, _), ns in self._in_states(track, step["t0_ns"], step["t1_ns"]).items():
                        found[state] += ns / MS
                is_known = set(found) - {"unknown"}
                waits = found["runnable"] + found["preempted"]
                times = {"running_ms": found["running"], "waiting_for_cpu_ms": waits, "blocked_ms": found["blocked"]}
                times["unknown_ms"] = found["unknown"]
                yield {name: step[name] for name in ("scene", "member", "step", "source", "ms")} | {
                    "at_s": (step["t0_ns"] - self.origin) / SECOND, "times_the_median": step["ms"] / usual,
                    **(times if is_known else dict.fromkeys(times, NAN)),
                }  # fmt: skip


def _limit(n, z):
    """Byar's limit of a Poisson number."""
    return n and n * (1 - 1 / (9 * n) + z / (3 * n**0.5)) ** 3


def differences(name, answer, expected):
    """What differs between the answer of a query and the reference, in words."""
    keys = KEYS[name]
    numbers = [column for column in answer if column not in (*keys, "trace")]
    if expected.empty:
        return [] if answer.empty else [f"{name}: {len(answer)} rows, expected none"]
    if set(numbers) != set(expected) - set(keys):
        return [f"{name}: columns {sorted(set(numbers) ^ (set(expected) - set(keys)))} are on one side only"]

    def rows(table):
        found = defaultdict(list)
        for row in table.to_dict("records"):
            words = tuple("" if pd.isna(row[key]) else row[key] for key in keys)
            found[words].append([NAN if pd.isna(row[column]) else float(row[column]) for column in numbers])
        return {key: sorted(cells, key=str) for key, cells in found.items()}

    ours, theirs = rows(expected), rows(answer)
    found = [f"{name}: {key} is on one side only" for key in set(ours) ^ set(theirs)]
    for key in set(ours) & set(theirs):
        for one, other in zip(theirs[key], ours[key], strict=True):
            if not np.allclose(one, other, rtol=1e-9, atol=1e-9, equal_nan=True):
                found.append(f"{name}: {key} is {dict(zip(numbers, one, strict=True))}, expected {other}")
    return found
