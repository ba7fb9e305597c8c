"""Measured launches keep the design that they were measured with: what a study says otherwise since then."""

from collections import Counter
from collections.abc import Iterable, Mapping

from castmates.english import counted
from castmates.study.model import Study
from castmates.study.planning import design_of
from castmates.study.spec import Design, Launch

# How a window is measured, and where a study says so; of what else differs, mixes have another identity.
KEYS: Mapping[str, str] = {
    **{key: f"budget.{key}" for key in ("window", "longest_window", "settle", "longest_settle", "steps", "slice")},
    "limits": "limits",
    "monitor": "cache.monitor",
    "driver": "cache.driver",
}
REMEDY = "What was measured counts; `castmates sweep --retry --changed` measures it again as the study says now."


def changed_launches(study: Study, launches: Iterable[Launch]) -> dict[str, tuple[str, ...]]:
    """The launches of a plan that were measured otherwise than the study says now: by their paths, what differs."""
    rounds = study.budget.model_copy(update={"rounds": "auto"})  # whatever a pilot found
    study = study.model_copy(update={"budget": rounds})
    controls = {
        "+".join([rule.lead, *rule.antagonists]) for _, rule in study.control_rules if rule.lead not in study.leads
    }
    now = {is_control: _settings(design_of(study, is_control)) for is_control in (False, True)}
    known: dict[tuple[int, bool], tuple[str, ...]] = {}  # launches share their designs
    found = {}
    for launch in launches:
        place = id(launch.design), all(mix.name in controls for mix in launch.cohort.mixes)
        if place not in known:
            had = _settings(launch.design)
            known[place] = tuple(
                f"'{key}' {had[key]}, where the study now says {value}"
                for key, value in now[place[1]].items()
                if key in had and had[key] != value
            )
        if known[place]:
            found[launch.path] = known[place]
    return found


def changed_words(study: Study, launches: Iterable[Launch]) -> list[str]:
    """What is said of them, for each way in which some differ."""
    counts = Counter(changed_launches(study, launches).values())
    return [
        f"{counted(count, 'launch')} {'was' if count == 1 else 'were'} measured with {'; '.join(words)}. {REMEDY}"
        for words, count in counts.items()
    ]


def _settings(design: Design) -> dict[str, object]:
    """The settings of a design, by the keys of a study."""
    settings: dict[str, object] = {}
    for name, value in design.model_dump(mode="json", include=set(KEYS)).items():
        if isinstance(value, dict):
            settings |= {f"{KEYS[name]}.{key}": each for key, each in value.items()}
        else:
            settings[KEYS[name]] = "auto" if value is None else value
    return settings
