"""JSON Schemas of the YAML files, for editors; `make schemas` writes them, a test shows when they are stale."""

import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, NoDefault
from pydantic_core import SchemaSerializer
from pydantic_core.core_schema import WithDefaultSchema

from castmates.study.finding_rules import FindingRules
from castmates.study.model import Catalogue, Study
from castmates.study.place_keys import PlaceKeys
from castmates.study.written import BY_HAND, Written

SCHEMAS: dict[str, type[Written]] = {
    "study.schema.json": Study,
    "catalogue.schema.json": Catalogue,
    "place.schema.json": PlaceKeys,
    "findings.schema.json": FindingRules,
}


class _Schema(GenerateJsonSchema):
    """Schemas whose defaults are as people write them; those of keys below a key stand there alone."""

    def get_default_value(self, schema: WithDefaultSchema) -> Any:  # noqa: ANN401 (as pydantic has it)
        default = super().get_default_value(schema)
        if isinstance(default, BaseModel) and not default.model_fields_set:
            return NoDefault
        if not isinstance(default, float | tuple):
            return default
        return SchemaSerializer(schema["schema"]).to_python(default, mode="json", context=BY_HAND)


def schema_text(name: str) -> str:
    """The schema file of this name, as text."""
    known = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:castmates:{name}"}
    schema = known | SCHEMAS[name].model_json_schema(schema_generator=_Schema)
    return json.dumps(schema, indent=2) + "\n"
