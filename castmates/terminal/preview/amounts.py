"""How much of a study is planned, measured and still to come: launches, windows and time."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from castmates.results.bundled_records import RecordReader
from castmates.results.folder import StudyFolder
from castmates.results.records import useless
from castmates.study.adaptive import scenes_measured
from castmates.study.spec import Launch, Plan
from castmates.terminal.preview.duration import seconds_of_launch

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
    """How much the launches of a plan are; each record is read once, and `torn` launches count for nothing."""

    def __init__(self, folder: StudyFolder, plan: Plan, torn: Collection[str] = ()) -> None:
        self._folder = folder
        self._first = {*plan.looks[0]} if plan.looks else {launch.path for launch in plan.launches}
        files = {launch.path: folder.record_file(launch) for launch in plan.launches if launch.path not in torn}
        read = RecordReader(folder).read
        self._reasons = {path: useless(read(file)) for path, file in files.items() if file.is_file()}

    def of(self, launches: Sequence[Launch]) -> Amount:
        """How much these launches are; where a precision is wanted, those of the first look are the least."""
        at_once = [launch for launch in launches if launch.path in self._first]
        missing = [launch for launch in launches if launch.path not in self._reasons]
        reasons = [self._reasons[launch.path] for launch in launches if launch.path in self._reasons]
        return Amount(
            launches=(len(at_once), len(launches)),
            measured=len(reasons),
            failed=reasons.count(FAILED),
            unclean=sum(reason not in ("", FAILED) for reason in reasons),
            windows=(sum(map(_windows, at_once)), sum(_windows(launch, spare=True) for launch in launches)),
            seconds=(
                sum(seconds_of_launch(self._folder, launch) for launch in missing if launch.path in self._first),
                sum(seconds_of_launch(self._folder, launch, spare=True) for launch in missing),
            ),
        )


def _windows(launch: Launch, spare: bool = False) -> int:
    return len(scenes_measured(launch)) * (launch.design.rounds + spare * launch.design.spare_rounds)
