"""The plan as text and back. A cohort or a design is written once, however many launches have it: thousands may."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pydantic import BaseModel

from castmates.study.frozen import Frozen
from castmates.study.spec import Cohort, Design, Launch, NodeClass, Plan
from castmates.study.trace_launches import trace_name

LISTS = ("launches", "profiles", "traces")  # of launches, in a plan
# What launches have in common: their key -> where it is written, and what it is.
SHARED: Mapping[str, tuple[str, type[Frozen]]] = {"cohort": ("cohorts", Cohort), "design": ("designs", Design)}


def plan_text(plan: Plan) -> str:
    """The plan as JSON; launches name their cohort and design by keys of `cohorts` and `designs`."""
    shared: dict[str, dict[str, Any]] = {place: {} for place, _ in SHARED.values()}
    every = (*plan.launches, *plan.profiles, *plan.traces)
    names = {
        "cohort": _names((launch.cohort for launch in every), lambda cohort: cohort.id, shared["cohorts"]),
        "design": _names((launch.design for launch in every), lambda _: "design", shared["designs"]),
    }

    def records(launches: Sequence[Launch]) -> list[dict[str, Any]]:
        return [
            {
                "study": launch.study,
                "cohort": names["cohort"][id(launch.cohort)],
                "number": launch.number,
                "seed": launch.seed,
                "design": names["design"][id(launch.design)],
            }
            for launch in launches
        ]

    lists = {key: records(getattr(plan, key)) for key in LISTS}
    return json.dumps(plan.model_dump(mode="json", exclude=set(LISTS)) | shared | lists, indent=1) + "\n"


def plan_of(text: str | bytes) -> Plan:
    """The plan that a text describes; ValueError where it describes none."""
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("no mapping")
    _check(content)
    kinds = dict(SHARED.values())
    content |= {
        place: {name: kind.model_validate(record) for name, record in content[place].items()}
        for place, kind in kinds.items()
        if place in content
    }
    return Plan.model_validate(unfolded(content))


class Task(NamedTuple):
    """What a launch has to know of the plan."""

    launch: Launch
    needs: Mapping[str, int]  # the bytes that each workload takes, where they matter
    machines: Sequence[NodeClass] = ()  # the classes of nodes


def task_of(text: str | bytes, path: str, key: str = "launches") -> Task | None:
    """One launch of the plan that a text describes, of the list `key`; ValueError where it describes none."""
    content = json.loads(text)
    if not isinstance(content, dict) or "launches" not in content:
        raise ValueError("no mapping with launches")
    _check(content)
    number = path.rpartition("/")[2]
    same_number = (
        launch for launch in content.get(key, ()) if isinstance(launch, dict) and str(launch.get("number")) == number
    )
    launches = (_whole(launch, content) for launch in same_number)
    found = next((launch for launch in launches if f"{launch['cohort']['id']}/{number}" == path), None)
    if found is None:
        return None
    machines = [NodeClass.model_validate(each) for each in content.get("machines", ())]
    return _task(Launch.model_validate(found), content.get("memory", {}), machines)


def trace_task_of(text: str | bytes, name: str) -> Task | None:
    """The launch of the plan that a text describes which makes the trace of this name; None where it has none."""
    plan = plan_of(text)
    found = next((launch for launch in plan.traces if trace_name(launch) == name), None)
    return None if found is None else task_for(found, plan)


def looks_of(text: str | bytes) -> tuple[Sequence[Sequence[str]], Sequence[str]]:
    """The looks of the plan that a text describes, and the mixes that are measured only where one asks for them."""
    content = json.loads(text)
    return content.get("looks", ()), content.get("later", ())


def task_in(plan: Plan, path: str) -> Task | None:
    """One launch of a plan."""
    found = next((launch for launch in plan.launches if launch.path == path), None)
    return None if found is None else task_for(found, plan)


def task_for(launch: Launch, plan: Plan) -> Task:
    """A launch of a plan, with what a launch has to know of it."""
    return _task(launch, plan.memory, plan.machines)


def _task(launch: Launch, memory: Mapping[str, int], machines: Sequence[NodeClass]) -> Task:
    """A launch with what its workloads take on a node of its class, or on the machine of a study without classes."""
    ours = next((each.memory for each in machines if each.name == launch.cohort.machine), memory)
    return Task(launch, ours, machines)


def unfolded(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with each launch's cohort and design in their places."""
    rest = {key: value for key, value in content.items() if key not in {place for place, _ in SHARED.values()}}
    if "launches" not in rest:
        return rest
    _check(content)
    return rest | {key: [_whole(launch, content) for launch in rest[key]] for key in LISTS if key in rest}


def _check(content: Mapping[str, Any]) -> None:
    """Refuse a content whose parts are of another kind."""
    for place, kind in {**dict.fromkeys(LISTS, list), **{place: dict for place, _ in SHARED.values()}}.items():
        if not isinstance(content.get(place, kind()), kind):
            raise ValueError(f"its '{place}' is not a {'list' if kind is list else 'mapping'}")


def _whole(launch: object, content: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(launch, dict):
        raise ValueError("one of its launches is not a mapping")
    named = {key: launch[key] for key in SHARED if isinstance(launch.get(key), str)}
    lacking = [name for key, name in named.items() if name not in content.get(SHARED[key][0], {})]
    if lacking:
        raise ValueError(f"it does not describe '{lacking[0]}'")
    return {**launch, **{key: content[SHARED[key][0]][name] for key, name in named.items()}}


def _names(records: Iterable[Any], usual: Callable[[Any], str], shared: dict[str, Any]) -> dict[int, str]:
    """A name for each object, the same for equal ones; `shared` gets what each name means."""
    names: dict[int, str] = {}
    by_text: dict[str, str] = {}
    for record in records:
        if id(record) not in names:
            names[id(record)] = _name(record, usual(record), by_text, shared)
    return names


def _name(record: BaseModel, usual: str, by_text: dict[str, str], shared: dict[str, Any]) -> str:
    text = record.model_dump_json()
    if text not in by_text:
        # What a measured launch's cohort records of builds and places may differ under the same id.
        by_text[text] = usual if usual not in shared else f"{usual}/{len(shared) + 1}"
        shared[by_text[text]] = record.model_dump(mode="json")
    return by_text[text]


class Common:
    """Makes launches of the records of thousands, each cohort and design once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Frozen] = {}
        self._last: dict[str, tuple[object, Frozen]] = {}  # neighbours often have one and the same object

    def launch_of(self, spec: Mapping[str, Any]) -> Launch:
        """The launch that a record's `spec` describes; ValueError where it describes none."""
        return Launch.model_validate({**spec, **{key: self._common(key, spec[key]) for key in SHARED if key in spec}})

    def _common(self, key: str, content: object) -> Frozen:
        last, made = self._last.get(key, (None, None))
        if made is None or last is not content:
            place = (key, json.dumps(content))
            if place not in self._known:
                self._known[place] = SHARED[key][1].model_validate(content)
            made = self._known[place]
            self._last[key] = (content, made)
        return made


# Fingerprints of thousands of launches: what they have in common is put into words once, not once for each.


class _Digest(Protocol):
    def update(self, text: bytes, /) -> None: ...


class Fingerprints:
    """The same as `Frozen.fingerprint` gives."""

    def __init__(self) -> None:
        self._texts: dict[int, bytes] = {}
        self._known: list[Frozen] = []  # kept, so that no other record gets the id of one of them

    def of_launch(self, launch: Launch, digits: int = 16) -> str:
        """The fingerprint of a launch."""
        digest = hashlib.sha256()
        self._add(digest, launch)
        return digest.hexdigest()[:digits]

    def of_plan(self, plan: Plan, digits: int = 16) -> str:
        """The fingerprint of a plan; its text, which may be hundreds of megabytes, is never whole in memory."""
        names = type(plan).model_fields
        before = plan.canonical(without=[name for name in names if name >= "launches"])  # keys are sorted
        after = plan.canonical(without=[name for name in names if name <= "launches"])
        digest = hashlib.sha256(before[:-1].encode() + b',"launches":[')
        for place, launch in enumerate(plan.launches):
            if place:
                digest.update(b",")
            self._add(digest, launch)
        digest.update(b"]," + after[1:].encode())
        return digest.hexdigest()[:digits]

    def _add(self, digest: _Digest, launch: Launch) -> None:
        """Add the launch's canonical text."""
        digest.update(b'{"cohort":')
        digest.update(self._text(launch.cohort))
        digest.update(b',"design":')
        digest.update(self._text(launch.design))
        rest = f',"number":{launch.number},"seed":{launch.seed},"study":{json.dumps(launch.study)}}}'
        digest.update(rest.encode())

    def _text(self, common: Cohort | Design) -> bytes:
        if id(common) not in self._texts:
            self._known.append(common)
            self._texts[id(common)] = common.canonical().encode()
        return self._texts[id(common)]
