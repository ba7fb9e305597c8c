"""The key `machines` of a study: the classes of nodes that it is measured on."""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, model_validator

from castmates.study.modelled import MachineModel
from castmates.study.written import Written

MAKES_ONE = "castmates doctor --capture"


class SlurmKeys(Written):
    """How Slurm finds the nodes of a class, in the words of its own options."""

    constraint: str | None = Field(default=None, description="features of the nodes, as sbatch's --constraint")
    partition: str | None = Field(default=None, description="the partition that they are in")
    nodelist: str | None = Field(default=None, description="their names, such as node[1-8]")


class MachineClass(Written):
    """One class of nodes: machines with the same processors, caches and memory."""

    capture: str | None = Field(
        default=None,
        description=f"the file that `{MAKES_ONE} FILE` wrote on one of its nodes, from the project's root",
    )
    model: MachineModel | None = Field(default=None, description="the machine, in a study whose platform is modelled")
    slurm: SlurmKeys = SlurmKeys()

    @model_validator(mode="after")
    def _one_machine(self) -> Self:
        if (self.capture is None) == (self.model is None):
            raise ValueError("either 'capture' (a file) or, in a modelled study, 'model'")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:  # noqa: ANN401 (pydantic's)
        """A file alone is short for its `capture`."""
        return {"anyOf": [{"type": "string"}, handler(core)]}


def _long(value: object) -> object:
    return {"capture": value} if isinstance(value, str) else value


OneClass = Annotated[MachineClass, BeforeValidator(_long)]


def refusal(machines: dict[str, MachineClass], platform: object) -> str:
    """What the study should have in place of these classes; "" where they are as they should be."""
    for name, one in machines.items():
        if platform == "modelled" and one.model is None:
            return (
                f"a 'model' for '{name}', because this study is modelled and a capture does not describe how a model "
                "behaves"
            )
        if platform != "modelled" and one.model is not None:
            return f"a 'capture' for '{name}' (`{MAKES_ONE} FILE` makes one), because this study is not modelled"
    known: dict[str, str] = {}
    for name, model in ((name, one.model) for name, one in machines.items() if one.model is not None):
        twin = known.setdefault(model.model_dump_json(), name)
        if twin != name:
            return f"different machines, but '{twin}' and '{name}' are the same model"
    return ""
