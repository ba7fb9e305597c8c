"""Every share is written with its per cent sign: studies, schemas and what is written for people follow one rule."""

import json

import jsonschema
import pytest

from castmates.errors import CastmatesError
from castmates.study.model import Study
from castmates.study.reading import read_keys, schema_text

SCHEMA = json.loads(schema_text("study.schema.json"))
MIX = {"lead": "a", "antagonists": ["b"]}
KEYS = {
    "margin": lambda share: {"margin": share},
    "budget.precision": lambda share: {"budget": {"precision": share}},
    **{
        f"limits.{key}": lambda share, key=key: {"limits": {key: share}}
        for key in ("steal", "foreign", "neighbours", "silence", "cycles", "restart_gap", "left_in_caches")
    },
    "recommend.lead_loss": lambda share: {"recommend": {"lead_loss": share}},
    "place.jobs.a.limit": lambda share: {"place": {"jobs": {"a": {"limit": share}}}},
    "predict.measure": lambda share: {"predict": {"leads": ["a", "b"], "measure": share}},
    "mixes.1.share.quota": lambda share: {"mixes": [MIX | {"share": {"quota": share}}]},
    "mitigations.1.quota": lambda share: {"mitigations": [MIX | {"quota": [share]}]},
    "model.turbo": lambda share: {"model": {"turbo": share}},
    "model.noise.window": lambda share: {"model": {"noise": {"window": share}}},
    "workloads.a.model.writes": lambda share: {"workloads": {"a": {"model": {"compute": 1, "writes": share}}}},
}
# What each may be besides whole per cents from 1% to 99%.
ZERO = {key for key in KEYS if key.startswith(("limits", "model", "workloads"))} - {"limits.silence", "limits.cycles"}
ALL = ZERO | {"limits.silence", "limits.cycles", "budget.precision", "predict.measure"}


def written(key, share):
    return {"name": "s"} | KEYS[key](share)


@pytest.mark.parametrize("key", KEYS)
def test_shares_have_their_sign_in_studies_and_schemas_and_are_written_with_it(key):
    for share, fits in {
        "99%": True, "99 %": True, 0: key in ZERO, "0%": key in ZERO, "100%": key in ALL, "99.5%": "quota" not in key,
        0.99: False, 99: False, 1: False, "99": False, "101%": False, "-1%": False, "99%%": False,
    }.items():  # fmt: skip
        try:
            study = read_keys(Study, json.dumps(written(key, share)), "s.yaml")
        except CastmatesError:
            study = None
        assert (study is not None) == fits, share
        assert jsonschema.Draft202012Validator(SCHEMA).is_valid(written(key, share)) == fits, share
        assert study is None or read_keys(Study, study.text("again"), "s.yaml") == study


@pytest.mark.parametrize(
    ("key", "share", "expected"),
    [
        ("margin", 0.03, "0.03% or 3%: shares are written with %"),
        ("limits.neighbours", 1, "1% or 100%: shares are written with %"),
        ("recommend.lead_loss", 3, "3%: shares are written with %"),
        ("recommend.lead_loss", 100, "a share above 0% and below 100%, such as 3%"),
        ("limits.steal", -0.1, "a share from 0% to 100%, such as 3%"),
    ],
)
def test_a_bare_number_is_refused_with_what_it_may_mean(key, share, expected):
    with pytest.raises(CastmatesError, match=rf"^s\.yaml, line 1: '{key}' is {share}, but expected {expected}\.$"):
        read_keys(Study, json.dumps(written(key, share)), "s.yaml")
