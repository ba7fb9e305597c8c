"""A launch: launch, barrier, windows, ledger, clean-up."""
