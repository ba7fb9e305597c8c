"""A block's rounds: scenes, settling, windows and their ledger."""
