"""Which file a study is read from, as Snakemake's options name it, or a workflow that uses ours as a module."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from castmates.errors import CastmatesError
from castmates.project import KEYS, chosen_study


class Options(Protocol):
    """What Snakemake's command line sets in the configuration."""

    config: Mapping[str, object]
    configfiles: Sequence[Path]


def study_of(config: Mapping[str, object], options: Options, written: Sequence[Path | str] = ()) -> Path:
    """The study of a sweep: `config` as the rules see it, and the files that `configfile:` named beside the options'.

    A file given by --configfile, or by `configfile:` where our workflow is a module, is the study itself.
    """
    if options.configfiles:
        return chosen_study(options.config, options.configfiles)
    if not (keys := set(config) - {*KEYS}) or not written:
        return chosen_study(config)
    file = chosen_study(options.config, [Path(each) for each in written])
    if changed := sorted(key for key in keys | set(_content(file)) if config.get(key) != _content(file).get(key)):
        raise CastmatesError(
            f"the workflow changed '{changed[0]}' of the configuration that it read from {file}: a study is its file, "
            "so change the key there."
        )
    return file


def _content(file: Path) -> Mapping[str, object]:
    from snakemake.common.configfile import load_configfile

    content: Mapping[str, object] = load_configfile(str(file))
    return content
