"""Programs that write the data sets of ordinary programs: fixed seeds, the standard library alone, no download."""
