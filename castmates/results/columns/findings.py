"""The data contract of trials: what the advice of a finding gave in fresh launches. Add columns at the end."""

from collections.abc import Mapping

from castmates.results.columns.block import Columns

# tables/gains.csv of the study of a trial: a row for the lead alone, and one beside each of its neighbours.
GAINS: Columns = {
    "study": "str",
    "lead": "str",
    "changed": "str",  # the lead after its change
    "beside": "str",  # its neighbours, joined by "+"; "" for alone
    "unit": "str",
    "rate": "float64",  # of the lead as it is: geometric mean over launches
    "changed_rate": "float64",  # of the changed lead, in steps of its own
    "work": "float64",  # how many times the work of a step that the changed lead does in one
    "gain_pct": "float64",  # by how much more work a second the changed lead does
    "gain_low": "float64",  # 95 % between launches; NaN below three launches of either
    "gain_high": "float64",
    "blocks": "int64",  # launches of the lead as it is
    "changed_blocks": "int64",  # launches of the changed one
    "p_value": "float64",
    "p_holm": "float64",  # adjusted over the rows of the trial
    "verdict": "str",  # gain, loss, no loss, can't tell yet, too few launches
    "platform": "str",
}

TRIAL_TABLES: Mapping[str, Columns] = {"gains": GAINS}
