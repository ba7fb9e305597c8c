"""Why a member loses: counters, phases, layers, step times."""
