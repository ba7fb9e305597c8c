"""A launch's rounds: scenes, settling, windows and their ledger."""
