"""The JSON Schemas are fresh, and every shipped YAML file names its schema in its first line."""

import json
from pathlib import Path

import pytest

from castmates.study.budget_keys import Budget, Limits
from castmates.study.model import Attribution, Machine, Placement, Prepare, Study, Workload
from castmates.study.partition_keys import CacheKeys, Sweep
from castmates.study.reading import SCHEMAS, read_keys, schema_text

CONFIG = Path(__file__).resolve().parents[2] / "config"
FILES = sorted(CONFIG.rglob("*.yaml"))


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_fresh(name):
    assert (CONFIG / "schemas" / name).read_text() == schema_text(name), "run `make schemas`"
    assert "description" in json.loads(schema_text(name))["properties"][next(iter(SCHEMAS[name].model_fields))]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_shipped_files_are_valid_and_name_their_schema(file):
    first = file.read_text().splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    schema = (file.parent / first.partition("=")[2]).resolve()
    assert schema.is_file()
    model = SCHEMAS[schema.name]
    read_keys(model, file.read_text(), file.name)


def test_config_readme_explains_every_key():
    text = (CONFIG / "README.md").read_text()
    for model in (Study, Attribution, Budget, Limits, CacheKeys, Sweep, Machine, Prepare, Placement, Workload):
        for key in model.model_fields:
            assert f"`{key}" in text or f"{key}`" in text, key
