"""A launch: start, barrier, windows, ledger, clean-up."""
