"""`castmates show --format`: files as TensorBoard reads them, tables as JSON; only its own files are replaced."""

import json
import math
import struct
from functools import cache

import pandas as pd
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from typer.testing import CliRunner

from castmates.cli import main
from castmates.report.export.scalars import EVENTS, Scalar, checksum, event_file
from tests.unit.results_maker import make
from tests.unit.test_estimate import on_disk, write

FIELDS = {  # of event.proto and summary.proto, as TensorFlow publishes them
    "Plugin": {"plugin_name": (1, "STRING")},
    "Metadata": {"plugin_data": (1, "Plugin"), "summary_description": (3, "STRING"), "data_class": (4, "INT32")},
    "Value": {"tag": (1, "STRING"), "simple_value": (2, "FLOAT"), "metadata": (9, "Metadata")},
    "Summary": {"value": (1, "Value")},
    "Event": {"wall_time": (1, "DOUBLE"), "step": (2, "INT64"), "file_version": (3, "STRING")}
    | {"summary": (5, "Summary")},
}


@cache
def event_class():
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="t", syntax="proto3")
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            entry = message.field.add(name=field, number=number, label=1)
            entry.type = getattr(entry, f"TYPE_{kind}", entry.TYPE_MESSAGE)
            if kind in FIELDS:
                entry.type_name = f".t.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Event"))


def read(content):
    """The events of a file; its checksums hold."""
    found, kind = [], event_class()
    while content:
        length, first = struct.unpack("<QI", content[:12])
        message, (second,) = content[12 : 12 + length], struct.unpack("<I", content[12 + length : 16 + length])
        assert (first, second) == (checksum(content[:8]), checksum(message))
        found.append(kind.FromString(message))
        content = content[16 + length :]
    return found


def test_checksums_are_those_that_are_published():
    plain = 0xE3069283  # CRC-32C of these digits
    assert checksum(b"123456789") == (((plain >> 15) | (plain << 17 & 0xFFFFFFFF)) + 0xA282EAD8) & 0xFFFFFFFF


def test_an_event_file_has_each_scalar_and_explains_each_tag_once():
    given = [Scalar("rate/ä", 1, 5.5, 2.5, "so fast"), Scalar("rate/ä", 300, 6.5, -1.0, "so fast")]
    head, *events = read(b"".join(event_file(given, 5.0)))
    assert (head.file_version, head.wall_time) == ("brain.Event:2", 5.0)
    values = [(one.step, one.wall_time, one.summary.value.tag, one.summary.value.simple_value) for one in events]
    assert values == [(1, 5.5, "rate/ä", 2.5), (300, 6.5, "rate/ä", -1.0)]
    metadata = [one.summary.value.metadata for one in events]
    assert [one.summary_description for one in metadata] == ["so fast", ""]
    assert (metadata[0].plugin_data.plugin_name, metadata[0].data_class) == ("scalars", 1)


def exported(folder, form="tensorboard"):
    done = CliRunner().invoke(main.app, ["show", str(folder), "--format", form])
    assert done.exit_code == 0, done.output
    return {str(file.parent.relative_to(folder)): read(file.read_bytes())[1:] for file in folder.rglob(EVENTS)}


def scalars(events):
    found = {}
    for event in events:
        found.setdefault(event.summary.value.tag, {})[event.step] = event.summary.value.simple_value
    return found


@pytest.mark.parametrize("platform", ["measured", "modelled"])
def test_a_study_becomes_runs_by_scene_and_json(tmp_path, platform):
    folder = make(tmp_path / "study", leads=("dlrm",), antagonists=("stream",), platform=platform)
    (folder / "tensorboard").mkdir()
    (folder / "tensorboard/mine.txt").touch()
    runs = exported(folder)
    assert runs == exported(folder, "tables")
    assert (folder / "tensorboard/mine.txt").exists()
    place = "tensorboard/modelled/dlrm-0000abcd" if platform == "modelled" else "tensorboard/dlrm-0000abcd"
    assert set(runs) == {f"{place}/{scene}" for scene in ("alone", "alone-again", "placebo:1", "corun:dlrm+stream")}
    rates = pd.read_parquet(folder / "tables/windows.parquet").query("valid and launch == 2 and scene == 'alone'")[
        "rate"
    ]
    alone = scalars(runs[f"{place}/alone"])["rate/dlrm@0"]
    assert set(alone) == {1, 2, 3, 4, 5}
    assert alone[2] == pytest.approx(math.exp(sum(map(math.log, rates)) / len(rates)), rel=1e-6)
    for file in folder.glob("tables/*.parquet"):
        table, rows = pd.read_parquet(file), json.loads(file.with_suffix(".json").read_text())
        assert len(rows) == len(table)
        assert not rows or list(rows[0]) == list(table.columns)
    assert json.loads((folder / "tables/effects.json").read_text())[0]["lead_ways"] is None


def test_losses_of_launches_come_to_the_losses_of_the_study(tmp_path):
    folder = on_disk(tmp_path / "study")
    write(folder)
    runs = exported(folder)
    effects = pd.read_parquet(folder / "tables/effects.parquet").query("baseline == 'alone' and role == 'lead'")
    compared = 0
    for row in effects[effects["launches"] > 0].itertuples():
        own = scalars(next(events for run, events in runs.items() if run.endswith(f"/corun:{row.mix}")))
        logs = [math.log(1 - loss / 100) for loss in own["loss/launch"].values()]
        assert 100 * (1 - math.exp(sum(logs) / len(logs))) == pytest.approx(row.loss_pct, rel=1e-5)
        assert list(own["loss/estimate"].values()) == pytest.approx([row.loss_pct] * len(logs), rel=1e-6)
        compared += 1
    assert compared
