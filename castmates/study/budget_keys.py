"""What a user may write under `budget` and `limits`: how much is measured, and what counts."""

from typing import Annotated, Literal

from pydantic import (
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
)

from castmates.study.written import Amount, Percentage, PositivePercentage, Written, bytes_of


def _rounds(value: object) -> object:
    named = value in ("auto", "pilot")
    if not named and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_ROUNDS):
        raise ValueError(f"a whole number from 1 to {MOST_ROUNDS}, or one of the words auto and pilot")
    return value


def _slice(value: object) -> object:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value != "auto" and not (is_number and SHORTEST_SLICE <= float(str(value)) <= LONGEST_SLICE):
        raise ValueError(f"seconds from {SHORTEST_SLICE:g} to {LONGEST_SLICE:g}, or the word auto")
    return value


MOST_ROUNDS = 1000
SHORTEST_SLICE, LONGEST_SLICE = 0.01, 600.0
FEWEST_AT_A_LOOK = 4
CONFIRMED_AFTER = 6  # launches: a precision that is reached is believed so many later
FRESH = 2  # launches of a cell after those that answered its question: their share keeps its interval honest


class Budget(Written):
    """How much measuring a study may do."""

    precision: PositivePercentage | None = Field(
        default=None,
        description="half-width of the interval of each lead's slowdown against alone at which no more launches are "
        "added, such as 1% of the time alone; without it there are exactly 'launches'",
    )
    adaptive: bool = Field(
        default=False,
        description="whether windows are spent where they decide: after fixed numbers of launches, mixes and "
        "partitions whose question is answered stop, and of a curve only those cells are measured that decide "
        "(castmates help methodology); not beside 'precision'",
    )
    launches: int = Field(
        default=5,
        ge=1,
        le=10_000,
        description="launches of each cohort; the sampling unit of the headline; with 'precision' or 'adaptive' the "
        "first look",
    )
    most_launches: int = Field(
        default=20,
        ge=1,
        le=10_000,
        validate_default=True,
        description="launches of each cohort, at most, where 'precision' or 'adaptive' is given; with 'precision' at "
        f"least {CONFIRMED_AFTER} more than 'launches', with 'adaptive' at least {FRESH} more",
    )
    batch: int = Field(default=2, ge=1, le=1000, description="launches that are added between two looks")
    rounds: Annotated[int | Literal["auto", "pilot"], BeforeValidator(_rounds)] = Field(
        default="auto",
        description="passes over all scenes inside a launch; 'auto': as many as the first two launches of each cohort "
        "show to be best for the others; 'pilot': as many as `castmates plan --pilot` found best",
    )
    spare_rounds: int = Field(
        default=1, ge=0, le=1000, description="rounds a launch may add for those with rejected windows"
    )
    window: float = Field(
        default=1.0, gt=0, le=600, description="seconds a scene is measured in a round, at least: the sum of its slices"
    )
    longest_window: float = Field(
        default=5.0,
        gt=0,
        le=600,
        description="seconds a slice may be stretched to so that its members complete enough steps",
    )
    slice: Annotated[float | Literal["auto"], BeforeValidator(_slice)] = Field(
        default="auto",
        description="seconds that a scene runs before the next one takes its turn; auto: at least 5 steps of the lead, "
        "10 times what a change of scene costs, and 4 settle times, as each launch finds them",
    )
    settle: float = Field(
        default=0.005, ge=0, le=3600, description="seconds that are left out after each change of scene, at least"
    )
    longest_settle: float = Field(
        default=2.0,
        ge=0,
        le=3600,
        description="seconds that the settle time is raised to, at most, where rates are seen to become steady later",
    )
    steps: int = Field(
        default=10, ge=2, description="steps that a member should complete in a window, which is stretched for it"
    )
    antagonists_alone: bool = Field(
        default=True,
        description="whether antagonists are also measured alone, from which their own losses follow; without these "
        "scenes the lead runs in every scene, and is never frozen between its slices",
    )
    placebo: bool = Field(
        default=True,
        description="whether the lead is also measured beside a placebo, which only keeps the antagonists' CPUs busy; "
        "without it all time goes to `alone` and the co-runs, and losses are not split by what a busy CPU costs",
    )
    mixes_per_launch: int = Field(default=6, ge=1, le=64, description="mixes that share a launch, at most")
    longest_launch: float = Field(
        default=600.0,
        gt=0,
        description="seconds a launch should take, at most; mixes that make it longer are split off",
    )

    @field_validator("adaptive")
    @classmethod
    def _one_rule(cls, adaptive: bool, info: ValidationInfo) -> bool:
        if adaptive and info.data.get("precision") is not None:
            raise ValueError("no 'precision' beside it: both decide how many launches there are")
        return adaptive

    @field_validator("launches")
    @classmethod
    def _enough_for_a_look(cls, launches: int, info: ValidationInfo) -> int:
        looking = [key for key in ("precision", "adaptive") if info.data.get(key)]
        if looking and launches < FEWEST_AT_A_LOOK:
            raise ValueError(
                f"at least {FEWEST_AT_A_LOOK}, because '{looking[0]}' learns too little from fewer launches"
            )
        return launches

    @field_validator("most_launches")
    @classmethod
    def _enough_to_confirm(cls, most: int, info: ValidationInfo) -> int:
        first = info.data.get("launches", 0)
        if info.data.get("precision") is not None and most < first + CONFIRMED_AFTER:
            raise ValueError(
                f"at least {first + CONFIRMED_AFTER}, because 'precision' is given: no cohort stops before "
                f"{CONFIRMED_AFTER} more than 'launches'"
            )
        if info.data.get("adaptive") and most < first + FRESH:
            raise ValueError(
                f"at least {first + FRESH}, because 'adaptive' is given: no mix stops before {FRESH} beyond 'launches'"
            )
        return most

    def without_looks(self, launches: int, **more: object) -> "Budget":
        """The same with exactly so many launches, and what else changes."""
        return self.model_copy(update={"launches": launches, "precision": None, "adaptive": False, **more})

    @property
    def has_looks(self) -> bool:
        """Whether looks on the way decide how much is measured."""
        return self.adaptive or self.precision is not None

    @property
    def looks(self) -> list[int]:
        """How many launches each cohort has at each look; there is but one where none decides anything."""
        if not self.has_looks:
            return [self.launches]
        return [*range(self.launches, self.most_launches, self.batch), self.most_launches]


class Limits(Written):
    """When a window is rejected; decided before anything is measured."""

    steal: Percentage = Field(
        default=0.03,
        description="share of CPU time stolen by the hypervisor on the members' CPUs",
    )
    foreign: Percentage = Field(
        default=0.05,
        description="share of a CPU of the launch that other programs took (two clock ticks are forgiven)",
    )
    neighbours: Percentage = Field(
        default=0.03,
        description="share of the CPU time around a last-level cache of the launch that other programs took on its "
        "other CPUs",
    )
    silence: PositivePercentage = Field(
        default=0.5,
        description="share of a slice for which a member that makes many steps in it may make none",
    )
    cycles: PositivePercentage = Field(
        default=0.5,
        description="share of a window's slices that must be left when rejected ones, and those beside them, are out",
    )
    swap: int = Field(default=0, ge=0, description="pages that the machine swapped in or out during a window")
    restart_gap: Percentage = Field(
        default=0.05,
        description="share of a window in which an antagonist that is run again and again was absent between two runs",
    )
    neighbour_cpus: float = Field(
        default=0.5,
        ge=0,
        description="CPUs whose time other programs took around a last-level cache of the launch, however many share "
        "it "
        "('neighbours: 100%' lets them take all)",
    )
    package_cpus: float = Field(
        default=1.0,
        ge=0,
        description="CPUs whose time other programs took in a package of the launch, whose memory controller it shares",
    )
    foreign_traffic: Amount = Field(
        default="1 GB",
        description="bytes a second that other programs moved through the caches of the launch's packages, where "
        "resctrl counts them",
    )

    left_in_caches: Percentage = Field(
        default=0.25,
        description="share of the last-level caches that members may still hold when these were emptied for a "
        "stretch, where occupancy can be read",
    )

    @property
    def foreign_bytes(self) -> int:
        """What others may move in a second."""
        return bytes_of(self.foreign_traffic)
