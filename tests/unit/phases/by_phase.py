"""Losses and counts by phase, as figures ask for them: of tables that are whole, or come some launches at a time."""

import pandas as pd

from castmates.analysis.explanations.phases import PhaseTimes, counts_by_phase, losses_by_phase


def phase_losses(steps, windows):
    return losses_by_phase(PhaseTimes([steps] if isinstance(steps, pd.DataFrame) else steps, windows))


def phase_counts(steps, counts, windows):
    return counts_by_phase(PhaseTimes(steps, windows), counts)
