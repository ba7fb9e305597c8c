"""Mutation runs: changes the code in small ways, one at a time, and asks whether a test notices (README.md)."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "castmates"
