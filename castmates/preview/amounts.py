"""How much of a study is planned, measured and still to come: launches, windows and time."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from castmates.preview.duration import seconds_of_block
from castmates.results.bundled_records import RecordReader
from castmates.results.folder import StudyFolder
from castmates.results.records import useless
from castmates.study.adaptive import scenes_measured
from castmates.study.spec import Block, Plan

FAILED = "failed"


@dataclass(frozen=True)
class Amount:
    """So many launches and windows, and the time that those take which are not measured yet; least and most."""

    launches: tuple[int, int] = (0, 0)
    measured: int = 0
    failed: int = 0  # of the measured ones
    unclean: int = 0  # of the measured ones: every round has a rejected window
    windows: tuple[int, int] = (0, 0)  # without and with all spare rounds
    seconds: tuple[float, float] = (0.0, 0.0)

    @property
    def unusable(self) -> int:
        """The launches that give the analysis little or nothing."""
        return self.failed + self.unclean


class Amounts:
    """How much the blocks of a plan are; each record is read once, and `torn` blocks count for nothing."""

    def __init__(self, folder: StudyFolder, plan: Plan, torn: Collection[str] = ()) -> None:
        self._folder = folder
        self._first = {*plan.looks[0]} if plan.looks else {block.path for block in plan.blocks}
        files = {block.path: folder.record_file(block) for block in plan.blocks if block.path not in torn}
        read = RecordReader(folder).read
        self._reasons = {path: useless(read(file)) for path, file in files.items() if file.is_file()}

    def of(self, blocks: Sequence[Block]) -> Amount:
        """How much these blocks are; where a precision is wanted, those of the first look are the least."""
        at_once = [block for block in blocks if block.path in self._first]
        missing = [block for block in blocks if block.path not in self._reasons]
        reasons = [self._reasons[block.path] for block in blocks if block.path in self._reasons]
        return Amount(
            launches=(len(at_once), len(blocks)),
            measured=len(reasons),
            failed=reasons.count(FAILED),
            unclean=sum(reason not in ("", FAILED) for reason in reasons),
            windows=(sum(map(_windows, at_once)), sum(_windows(block, spare=True) for block in blocks)),
            seconds=(
                sum(seconds_of_block(self._folder, block) for block in missing if block.path in self._first),
                sum(seconds_of_block(self._folder, block, spare=True) for block in missing),
            ),
        )


def _windows(block: Block, spare: bool = False) -> int:
    return len(scenes_measured(block)) * (block.design.rounds + spare * block.design.spare_rounds)
