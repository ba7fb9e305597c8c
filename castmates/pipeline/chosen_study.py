"""Which file a study is read from, as Snakemake's options name it, or a workflow that uses ours as a module."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from castmates.errors import CastmatesError
from castmates.results.named import default_study

KEYS = ("study", "launches")  # of Snakemake's --config


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


def chosen_study(config: Mapping[str, object], files: Sequence[Path] = ()) -> Path:
    """The study named by Snakemake's `--config study=FILE` or `--configfile FILE`, or the default one."""
    if strange := sorted(set(config) - set(KEYS)):
        raise CastmatesError(
            f"'{strange[0]}' is not understood here: choose a study with --config study=FILE or --configfile FILE, "
            "and change its keys in that file; --config launches=N asks for more launches."
        )
    named = [*map(str, files), *([str(config["study"])] if "study" in config else [])]
    if len(named) > 1:
        raise CastmatesError(
            f"one study at a time, not {' and '.join(map(os.path.relpath, named))}: choose it with --config "
            "study=FILE or with --configfile FILE."
        )
    return Path(os.path.relpath(named[0] if named else default_study()))


def _content(file: Path) -> Mapping[str, object]:
    from snakemake.common.configfile import load_configfile

    content: Mapping[str, object] = load_configfile(str(file))
    return content
