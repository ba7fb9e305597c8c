"""Readers of traces that other programs recorded: each makes a timeline, and an account of what it used."""
