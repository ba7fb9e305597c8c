"""More launches than a study's file has: `castmates sweep --launches 12` asks for them without an edit."""

from castmates.errors import CastmatesError
from castmates.study.model import Study

MOST = 10_000  # as for 'budget.launches'


def checked_launches(asked: object, study: Study, study_file: str) -> int:
    """The number of launches that the user asks for, if this study can have so many."""
    fewest = study.budget.launches
    try:
        number = int(str(asked).strip())
    except ValueError:
        number = 0
    if study.budget.precision is not None:
        raise CastmatesError(
            f"launches={asked}: {study_file} has a 'precision', which decides how many launches there are; change "
            "'precision' or 'most_launches' under 'budget' there."
        )
    if study.budget.adaptive:
        raise CastmatesError(
            f"launches={asked}: {study_file} is 'adaptive', so that looks decide how many launches there are; change "
            "'most_launches' under 'budget' there."
        )
    if not fewest <= number <= MOST:
        raise CastmatesError(
            f"launches={asked}: expected a whole number of launches from {fewest}, which {study_file} has, to {MOST}."
        )
    return number


def with_launches(study: Study, asked: int) -> Study:
    """The study with as many launches as were asked for, where that is more than it has."""
    if study.budget.has_looks or asked <= study.budget.launches:
        return study
    return study.model_copy(update={"budget": study.budget.model_copy(update={"launches": asked})})
