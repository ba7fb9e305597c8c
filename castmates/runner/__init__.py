"""A block: launch, barrier, windows, ledger, clean-up."""
