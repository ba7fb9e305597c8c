"""A data set is made once by a rule, and a block's record says what was read."""

from castmates.workloads import inputs
from tests.workflow.sweeps import ROOT
from tests.workflow.test_edits import unchanged

READER = {"command": ["sh", "-c", "cat {inputs}/* > /dev/null"], "inputs": "xml"}


def test_inputs_are_made_once_and_read_by_what_is_measured(project):
    before = project.blocks()
    project.write_study({"workloads": {"reader": READER}, "antagonists": ["stream", "reader"]})
    done = project.run()
    assert done.returncode == 0, done.stdout + done.stderr
    (place,) = project.cache.glob("inputs/xml-*")
    assert place.name == f"xml-{inputs.key('xml', ROOT / 'envs')}"
    made = inputs.ready_file(place).stat().st_mtime_ns

    first = project.blocks()
    assert unchanged(before, first)
    records = [project.record(block) for block in first if block not in before]
    assert {record["status"] for record in records} == {"measured"}
    assert {record["inputs"]["xml"]["key"] for record in records} == {place.name.removeprefix("xml-")}
    commands = [one["command"] for name, one in records[0]["members"].items() if name.startswith("reader@")]
    assert commands[0][-1] == f"cat {place}/* > /dev/null"

    again = {"like": "reader", "title": "another reader", "variables": {"WHERE": "{inputs}"}}
    project.write_study({"workloads": {"reader": READER, "again": again}, "antagonists": ["stream", "reader", "again"]})
    assert project.run().returncode == 0
    assert unchanged(first, project.blocks())
    assert inputs.ready_file(place).stat().st_mtime_ns == made
    assert "Nothing to be done" in project.run("--dry-run").stdout
