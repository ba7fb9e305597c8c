"""Fresh blocks for recommended partitions: the studies that measure them, and what their blocks say, on disk."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from castmates.errors import CastmatesError
from castmates.files import replace_text
from castmates.study.confirmation import FEWEST_BLOCKS, confirming, mix_under, name_of, text_of
from castmates.study.model import Study
from castmates.study.spec import Block, Mix, Plan

if TYPE_CHECKING:
    import pandas as pd

    from castmates.analysis.partitions.confirmation import Searched
    from castmates.project import Project


def study_files(results: Path) -> list[Path]:
    """The study files that confirm partitions of these results."""
    return sorted((results / "confirm").glob("*.yaml"))


def block_folders(results: Path) -> list[Path]:
    """The measured blocks of the confirming studies."""
    found = (results.parent / file.stem for file in study_files(results))
    return [file.parent for folder in found for file in sorted(folder.glob("blocks/*/*/block.json"))]


def block_files(results: Path) -> list[str]:
    """What the tables are made of, beside the study's own blocks."""
    return [str(folder / name) for folder in block_folders(results) for name in ("block.json", "windows.parquet")]


def write_study(project: "Project", plan: Plan, mix: str, partition: str, blocks: int | None) -> Path:
    """Write the study that confirms this partition, and say where."""
    from castmates.project import with_rounds_of_pilot

    chosen = mix_under(plan, mix, partition)
    study = with_rounds_of_pilot(project.study, project.study_file)
    count = max(FEWEST_BLOCKS, study.budget.blocks) if blocks is None else blocks
    file = project.results / "confirm" / f"{name_of(study.name, chosen)}.yaml"
    replace_text(file, text_of(confirming(study, plan, chosen, count), str(project.study_file)))
    return file


def confirmed_rows(plan: Plan, results: Path) -> "pd.DataFrame":
    """What the fresh blocks say: a row of the Pareto table for each confirming study of a partition of this plan."""
    import pandas as pd

    from castmates.results.columns.partitions import PARETO
    from castmates.results.columns.study import frame

    mixes = {name_of(plan.study, mix): mix for mix in plan.mixes if mix.partitions and mix.antagonists}
    rows = [
        _confirmed(plan, mixes[file.stem], results.parent / file.stem, _searched(plan, mixes[file.stem], results))
        for file in study_files(results)
        if file.stem in mixes
    ]
    return pd.concat([frame([], PARETO), *rows], ignore_index=True).astype(dict(PARETO))


def _confirmed(plan: Plan, mix: Mix, folder: Path, searched: "Searched") -> "pd.DataFrame":
    """The row of one confirming study."""
    from castmates.analysis.effects.effects import estimate_effects
    from castmates.analysis.partitions.confirmation import other_design, refusal
    from castmates.analysis.partitions.pareto import CONFIRMED, pareto_table
    from castmates.pipeline.estimate_effects import read_windows
    from castmates.project import read_record
    from castmates.results.columns.partitions import PARETO
    from castmates.results.columns.study import frame

    counted, reasons = [], []
    for file in sorted(folder.glob("blocks/*/*/block.json")):
        record = read_record(file)
        if why := refusal(record, searched):
            reasons.append(why)
        else:
            counted.append((file.parent, Block.model_validate(record["spec"])))
    fresh = plan.model_copy(
        update={"study": folder.name, "mixes": (mix,), "controls": (), "looks": (),
                "blocks": tuple(block for _, block in counted)}
    )  # fmt: skip
    windows = read_windows([place for place, _ in counted])
    table = pareto_table(fresh, windows, estimate_effects(fresh, windows, margin=0.0), CONFIRMED)
    if table.empty:
        table = frame([_nothing(mix, searched.platform, folder.name)], PARETO)
    why = "; ".join(dict.fromkeys(reasons))
    design = other_design((block.design for _, block in counted), (block.design for block in plan.blocks))
    return table.assign(study=plan.study, frontier=False, refused=len(reasons), why_refused=why, design=design)


def _nothing(mix: Mix, platform: str, source: str) -> dict[str, Any]:
    """A confirming study of which no block counts."""
    from castmates.analysis.effects.contrasts import workload_of

    lead, *others = map(workload_of, (mix.lead, *mix.antagonists))
    return {
        "mix": mix.name, "lead": lead, "antagonists": "+".join(others), "partition": mix.partitions[0].name,
        "stage": "confirmed", "source": source, "blocks": 0, "refused": 0, "frontier": False, "platform": platform,
    }  # fmt: skip


def _searched(plan: Plan, mix: Mix, results: Path) -> "Searched":
    """What is known of the search, from the records of its blocks with this mix."""
    from castmates.analysis.partitions.confirmation import Searched
    from castmates.project import read_record

    having = {block.path for block in plan.blocks if any(one.identity == mix.identity for one in block.company.mixes)}
    files = [results / "blocks" / path / "block.json" for path in sorted(having)]
    records = [read_record(file) for file in files if file.is_file()]
    return Searched(
        study=plan.study,
        mix=mix,
        platform=next((str(one.get("platform")) for one in records), ""),
        seeds={block.seed for block in plan.blocks},
        hosts={str(one.get("host")) for one in records},
    )


def wanted(study: Study, plan: Plan, advice: "pd.DataFrame", mix: str) -> list[tuple[str, str]]:
    """Mix and partition of everything that is recommended, or of what is recommended for this mix."""
    from castmates.analysis.partitions.recommendation import MET

    if mix and mix not in (names := {one.name for one in plan.mixes if one.antagonists}):
        raise CastmatesError(f"the study '{study.name}' has no mix '{mix}'; there are: {', '.join(sorted(names))}.")
    asked = advice[(advice["mix"] == mix) | (mix == "")]
    met = asked[asked["verdict"] == MET]
    if met.empty:
        which = f"the mix '{mix}' of the study '{study.name}'" if mix else f"the study '{study.name}'"
        raise CastmatesError(
            f"{which} has nothing to confirm: {_why_not(asked)}; --mix with --partition measures any partition again."
        )
    return list(dict.fromkeys(zip(met["mix"].astype(str), met["partition"].astype(str), strict=True)))


def _why_not(advice: "pd.DataFrame") -> str:
    """What stands in the way of a recommendation, of most mixes first."""
    from castmates.analysis.partitions.recommendation import NO_SWEEP, NOT_MET, TOO_FEW

    words = {
        NOT_MET: f"no lead mask is shown to keep the limit of {advice['limit_pct'].iloc[0]:g} %, and `castmates "
        "recommend` says what comes nearest",
        TOO_FEW: "fewer than three launches cannot tell which lead mask keeps the limit, so measure more blocks",
        NO_SWEEP: "no partition that gives the lead ways of its own was measured, so add a sweep such as `split: all`",
    }
    found = advice["verdict"].value_counts()
    if len(found) == 1:
        return words[str(found.index[0])]
    return "; ".join(f"{count} mix{'es' * (count > 1)}: {words[str(verdict)]}" for verdict, count in found.items())
