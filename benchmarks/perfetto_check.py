"""Whether Perfetto's own trace processor finds in trace.pftrace what the tables of a trace have, each row once.

python -m benchmarks.perfetto_check results/STUDY/traces/MIX
python -m benchmarks.perfetto_check --rows 100000
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.trace_processor import TraceProcessor, reading, why_not
from castmates.results.columns.trace import PERFETTO_FILE
from castmates.timeline.export.perfetto import write
from castmates.timeline.model import Timeline
from castmates.timeline.tables import read

SLICES = """
with notes as (
  select arg_set_id,
    max(iif(key = 'debug.detail', string_value, null)) as detail,
    max(iif(key = 'debug.value', display_value, null)) as value,
    max(iif(key = 'debug.cpu', int_value, null)) as cpu
  from args group by arg_set_id)
select s.ts, s.dur, s.depth, s.category as kind, s.name, th.tid as tid, coalesce(tp.pid, p.pid) as pid,
  notes.detail, cast(notes.value as real) as value, notes.cpu, s.track_id as line
from slice s
left join thread_track tt on tt.id = s.track_id left join thread th on th.utid = tt.utid
left join process tp on tp.upid = th.upid
left join process_track pt on pt.id = s.track_id left join process p on p.upid = pt.upid
left join notes on notes.arg_set_id = s.arg_set_id
where s.category is null or s.category not in ('about', 'ran', 'wakes')
"""
RAN = "select ts, dur, name from slice where category = 'ran'"
COUNTERS = """
select c.ts, t.name, coalesce(t.unit, '') as unit, c.value, p.pid
from counter c join counter_track t on t.id = c.track_id
left join process_counter_track pt on pt.id = t.id left join process p on p.upid = pt.upid
where t.type like '%track_event'
"""
STACKS = """
with recursive chain(id, parent, at, text) as (
  select id, parent_id, id, name from (select c.id, c.parent_id, f.name from stack_profile_callsite c
    join stack_profile_frame f on f.id = c.frame_id)
  union all
  select chain.id, c.parent_id, c.id, f.name || ';' || text from chain
  join stack_profile_callsite c on c.id = chain.parent join stack_profile_frame f on f.id = c.frame_id)
select s.ts, th.tid, chain.text as stack from perf_sample s join thread th on th.utid = s.utid
join chain on chain.id = s.callsite_id and chain.parent is null
"""
SOUND: Mapping[str, str] = {  # questions whose answer is 0
    "errors while reading": "select count(*) as n from stats where value != 0 and severity in ('error', 'data_loss')",
    "intervals without an end": "select count(*) as n from slice where dur < 0",
    "intervals that reach beyond the one around them": """select count(*) as n from slice c join slice p
        on p.id = c.parent_id where c.ts < p.ts or c.ts + c.dur > p.ts + p.dur or c.track_id != p.track_id""",
}


def compared(timeline: Timeline, processor: TraceProcessor) -> pd.DataFrame:
    """Per kind of row how many the tables have, how many the trace, and how many are not the same in both."""
    ours = [_of_intervals(timeline), _of_instants(timeline)]
    slices = processor.ask(SLICES)
    slices["depth"] = slices["depth"].where(slices["dur"] > 0, 0)
    found = [_differences("kind", pd.concat(ours), slices)]
    found.append(_differences("shown on CPUs", _on_cpus(timeline), processor.ask(RAN)))
    samples = timeline.samples.rename(columns={"t_ns": "ts"})[["ts", "track", "name", "value", "unit"]]
    samples["pid"] = _places(timeline).loc[samples.pop("track"), "pid"].to_numpy()
    found.append(_differences("samples", samples, processor.ask(COUNTERS)))
    stacks = timeline.stacks.rename(columns={"t_ns": "ts"})[["ts", "track", "stack"]]
    stacks["tid"] = _places(timeline).loc[stacks.pop("track"), "tid"].to_numpy()
    found.append(_differences("stacks", stacks, processor.ask(STACKS)))
    return pd.concat(found, ignore_index=True)


def _on_cpus(timeline: Timeline) -> pd.DataFrame:
    """What the lanes of CPUs should show, unless the CPUs themselves were recorded."""
    rows = timeline.intervals
    chosen = (
        (rows["kind"] == "state") & (rows["name"] == "running") & rows["cpu"].notna() & (rows["t0_ns"] < rows["t1_ns"])
    )
    rows = rows[chosen] if not (rows["kind"] == "on_cpu").any() else rows.head(0)
    who = timeline.tracks.set_index("track").loc[rows["track"]]
    label = (who["member"].astype(str) + ": " + who["name"].astype(str)).str.removeprefix(": ").to_numpy()
    return pd.DataFrame({"ts": rows["t0_ns"], "dur": rows["t1_ns"] - rows["t0_ns"], "name": label})


def unsound(processor: TraceProcessor) -> dict[str, int]:
    """What should be 0 and is not."""
    counts = {what: int(processor.ask(sql)["n"].iloc[0]) for what, sql in SOUND.items()}
    return {what: count for what, count in counts.items() if count}


def _places(timeline: Timeline) -> pd.DataFrame:
    """The process and thread that each track should be found on."""
    tracks = timeline.tracks.set_index("track")
    places = tracks[["pid", "tid"]].astype("Float64")
    members = timeline.about.get("members") or {}
    for track, row in tracks[tracks["kind"].isin(["member", "device"]) & (tracks["member"] != "")].iterrows():
        pids = tracks["pid"][(tracks["member"] == row["member"]) & tracks["kind"].isin(["process", "thread"])].dropna()
        known = (members.get(row["member"]) or {}).get("pid")
        places.loc[track, "pid"] = known if known in set(pids) or not len(pids) else pids.iloc[0]
    return places


def _of_intervals(timeline: Timeline) -> pd.DataFrame:
    rows = timeline.intervals
    empty = rows["t0_ns"] == rows["t1_ns"]  # an instant in Perfetto, which may touch others
    times = {"ts": rows["t0_ns"], "dur": rows["t1_ns"] - rows["t0_ns"], "depth": rows["depth"].where(~empty, 0)}
    return _slices(timeline, rows, times)


def _of_instants(timeline: Timeline) -> pd.DataFrame:
    return _slices(timeline, timeline.instants, {"ts": timeline.instants["t_ns"], "dur": 0, "depth": 0})


def _slices(timeline: Timeline, rows: pd.DataFrame, times: Mapping[str, object]) -> pd.DataFrame:
    places = _places(timeline).loc[rows["track"]]
    found = pd.DataFrame({**times, **{each: rows[each] for each in ("kind", "name", "detail", "value", "cpu")}})
    found["detail"] = found["detail"].astype(object).where(rows["detail"] != "", None)
    return found.assign(pid=places["pid"].to_numpy(), tid=places["tid"].to_numpy())


def _differences(by: str, ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Per kind, the rows of both and those that only one has, as often as it has them more."""
    columns = list(ours.columns)
    one, other = (_plain(each, columns).value_counts(dropna=False) for each in (ours, theirs))
    counts = pd.concat([one.rename("tables"), other.rename("trace")], axis=1).fillna(0).astype(int)
    counts["different"] = (counts["tables"] - counts["trace"]).abs()
    keys = counts.index.get_level_values("kind") if by == "kind" else np.repeat(by, len(counts))
    return counts.groupby(np.asarray(keys)).sum().rename_axis("kind").reset_index()


def _plain(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Cells that are equal where they mean the same: numbers as numbers, nothing as an empty text."""
    plain: dict[str, pd.Series] = {}
    for column in columns:
        cells = rows[column]
        if column in ("ts", "dur", "depth"):
            plain[column] = cells.astype("int64")
        elif column in ("value", "cpu", "pid", "tid"):
            plain[column] = pd.to_numeric(cells.astype(object), errors="coerce").astype(float).fillna(-1e300)
        else:
            plain[column] = cells.astype(object).where(cells.notna(), "").astype(str)
    return pd.DataFrame(plain)


def main() -> None:
    """Compare a trace, or a made one, and show the counts; a difference is a failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="the folder of a trace")
    parser.add_argument("--rows", type=int, default=20_000, help="how many rows a made trace has")
    given = parser.parse_args()
    if why := why_not():
        sys.exit(why)
    with tempfile.TemporaryDirectory() as folder:
        if given.folder:
            timeline, file = read(given.folder), given.folder / PERFETTO_FILE
        else:
            from tests.unit.timeline_maker import made

            timeline, file = made(given.rows), Path(folder) / PERFETTO_FILE
        if not file.is_file():
            write(timeline, file)
        with reading(file) as processor:
            table, wrong = compared(timeline, processor), unsound(processor)
    print(table.to_string(index=False))
    for source in timeline.about.get("sources") or []:
        counts = ", ".join(f"{name} {count}" for name, count in (source.get("events") or {}).items())
        print(f"recorded by {source.get('name')}: {counts or source.get('reason')}; lost {source.get('lost')}")
    for what, count in wrong.items():
        print(f"{what}: {count}")
    if wrong or table["different"].any():
        sys.exit("The trace is not what the tables are.")
    print("Every row of the tables is in the trace once; no errors while reading.")


if __name__ == "__main__":
    main()
