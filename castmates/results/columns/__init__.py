"""The data contract: every column of every table."""
