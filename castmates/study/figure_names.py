"""Which figures a study has: known before anything is measured."""

from castmates.study.model import Study


def figure_names(study: Study | None, partitioned: bool) -> list[str]:  # noqa: ARG001
    """The figures in the order of the report; those that a study asks for are left out where it is not known."""
    return ["heatmap", "control", "windows", *(["partitions"] if partitioned else [])]
