"""Programs: how to prepare, start and watch them. Importable from any interpreter: standard library only."""
