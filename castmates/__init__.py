"""Castmates: co-location interference studies."""

__version__ = "0.1.0"
