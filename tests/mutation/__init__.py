"""Mutation runs: changes the code in small ways, one at a time, and asks whether a test notices (README.md)."""

from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGE = "castmates"
