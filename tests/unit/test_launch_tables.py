"""Tables of many launches are read at once, or in parts, as they were written."""

import math

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal, assert_series_equal

from castmates.errors import CastmatesError
from castmates.results import launch_tables
from castmates.results.columns.launch import COUNTERS, STEPS, WINDOWS
from castmates.results.columns.study import frame

NS = 2**60 + 1  # more than a float can distinguish from its neighbours


def steps_of(launch, rows, begin=True, **phases):
    table = [
        {
            "study": "s", "cohort": "c", "launch": launch, "window": n, "member": "m@0", "t_ns": NS + n, "units": n,
            "platform": "measured", "slice": n,
        } | {f"{phase}_s": seconds for phase, seconds in phases.items()}
        for n in range(rows)
    ]  # fmt: skip
    steps = frame(table, dict(STEPS) | {f"{phase}_s": "float64" for phase in phases})
    begins = [NS + n if n % 2 else None for n in range(rows)]
    return steps.assign(begin_ns=pd.array(begins, "Int64")) if begin else steps.drop(columns="begin_ns")


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_nanoseconds_are_exact_beside_missing_ones(missing):
    made = frame([{"first_ns": NS}, {"first_ns": missing}, {}, {"first_ns": NS + 1}], {"first_ns": "Int64"})["first_ns"]
    assert made.tolist() == [NS, pd.NA, pd.NA, NS + 1]
    assert made.dtype == "Int64"


@pytest.fixture
def places(tmp_path):
    """Five launches: with steps, without rows, from before there were begins, with a phase, with no table at all."""
    tables = [
        steps_of(1, 3), steps_of(2, 0), steps_of(3, 4, begin=False),
        steps_of(4, 2, input=0.25), None,
    ]  # fmt: skip
    found = [tmp_path / "c" / str(number) for number in range(1, 6)]
    for place, table in zip(found, tables, strict=True):
        place.mkdir(parents=True)
        if table is not None:
            table.to_parquet(place / "steps.parquet", index=False)
    return found


def test_rows_come_in_the_order_of_the_launches_with_the_types_of_the_contract(places):
    found = launch_tables.read(places, "steps")
    assert found["launch"].tolist() == [1] * 3 + [3] * 4 + [4] * 2
    assert found.dtypes[list(STEPS)].astype(str).to_dict() == dict(STEPS)
    assert found["t_ns"].tolist() == [NS, NS + 1, NS + 2, NS, NS + 1, NS + 2, NS + 3, NS, NS + 1]
    assert found["begin_ns"].dropna().tolist() == [NS + 1, NS + 1]  # to the last digit
    assert found["input_s"].dropna().tolist() == [0.25, 0.25]
    assert found.columns.tolist() == [*STEPS, "input_s"]


def test_parts_are_the_whole(places):
    whole = launch_tables.read(places, "steps", ["launch", "t_ns", "input_s"])
    for launches in (1, 2, 10):
        found = list(launch_tables.parts(places, "steps", ["launch", "t_ns", "input_s"], launches))
        assert all(len(part) for part in found)
        assert_frame_equal(pd.concat(found, ignore_index=True), whole)


def test_names_as_categories_are_the_same_names(places):
    whole = launch_tables.read(places, "steps")
    for launches in (1, 2, 10):
        found = list(launch_tables.parts(places, "steps", launches=launches, categories=("study", "member")))
        assert {str(part[name].dtype) for part in found for name in ("study", "member")} == {"category"}
        together = pd.concat([part.astype({"study": "str", "member": "str"}) for part in found], ignore_index=True)
        assert_frame_equal(together[list(STEPS)], whole[list(STEPS)])


def test_nothing_is_a_table_without_rows(places):
    assert launch_tables.read([], "steps").columns.tolist() == list(STEPS)
    assert launch_tables.read(places, "counters").dtypes.astype(str).to_dict() == dict(COUNTERS)
    assert list(launch_tables.parts(places, "counters")) == []


def test_windows_that_were_measured_before_their_begin_was_written_lack_it(tmp_path):
    row = dict.fromkeys(WINDOWS, 1) | {"started": 5.0}
    for name, columns in (("old", []), ("new", ["started"])):
        (tmp_path / name).mkdir()
        table = frame([row], WINDOWS)[[*(column for column in WINDOWS if column != "started"), *columns]]
        table.to_parquet(tmp_path / name / "windows.parquet")
    both = launch_tables.read_windows([tmp_path / "old", tmp_path / "new"])
    assert_series_equal(both["started"], pd.Series([math.nan, 5.0], name="started"))
    launch_tables.gather([tmp_path / "old", tmp_path / "new"], "windows", tmp_path / "windows.parquet")
    assert_frame_equal(launch_tables.read_windows([tmp_path]), both)


def test_what_is_gathered_reads_as_it_was(places, tmp_path):
    whole, bundle = launch_tables.read(places, "steps"), tmp_path / "bundle"
    bundle.mkdir()
    for name in ("steps", "counters"):
        launch_tables.gather(places, name, bundle / f"{name}.parquet")
    assert_frame_equal(launch_tables.read([bundle], "steps"), whole)
    assert_frame_equal(pd.read_parquet(bundle / "steps.parquet"), whole)
    assert pd.read_parquet(bundle / "counters.parquet").dtypes.astype(str).to_dict() == dict(COUNTERS)


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (lambda file: file.write_text("PAR?"), "windows.parquet cannot be read"),
        (lambda file: frame([], WINDOWS).drop(columns="rate").to_parquet(file), "it has no column 'rate'"),
        (lambda _file: None, "windows.parquet cannot be read"),
    ],
)
def test_windows_that_cannot_be_read_are_named(tmp_path, write, sentence):
    write(tmp_path / "windows.parquet")
    with pytest.raises(CastmatesError, match=sentence) as caught:
        launch_tables.read([tmp_path], "windows")
    assert "\n" not in str(caught.value)
    assert f"remove {tmp_path} " in str(caught.value)
