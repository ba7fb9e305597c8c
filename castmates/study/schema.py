"""JSON Schemas of the YAML files, for editors; `make schemas` writes them, a test shows when they are stale."""

import json

from castmates.study.finding_rules import FindingRules
from castmates.study.model import Catalogue, Study
from castmates.study.place_keys import PlaceKeys
from castmates.study.written import Written

SCHEMAS: dict[str, type[Written]] = {
    "study.schema.json": Study,
    "catalogue.schema.json": Catalogue,
    "place.schema.json": PlaceKeys,
    "findings.schema.json": FindingRules,
}


def text_of(name: str) -> str:
    """The schema file of this name, as text."""
    known = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:castmates:{name}"}
    schema = known | SCHEMAS[name].model_json_schema()
    return json.dumps(schema, indent=2) + "\n"
