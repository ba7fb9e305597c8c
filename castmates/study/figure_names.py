"""Which figures a study has: known before anything is measured."""

from castmates.study.model import Study


def figure_names(study: Study | None, partitioned: bool, phases: bool = False, watched: bool = False) -> list[str]:
    """The figures in the order of the report; those that a study asks for are left out where it is not known."""
    under = ["partitions", "heatmap_partitions", "sensitivity", "pareto"] if partitioned else []
    names = ["heatmap", "attribution", "health", "control", "windows", *under, "steptimes"]
    names += ["timeline"] if watched and (study is None or study.cache.monitor) else []
    if study is None or study.platform == "modelled":
        return names
    names += ["counters"] if study.counters.events else []
    names += ["topdown"] if study.counters.topdown else []
    names += ["layers"] if study.counters.profile else []
    return [*names, *(["phases"] if phases else []), "evolution"]
