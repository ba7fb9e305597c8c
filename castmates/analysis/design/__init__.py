"""How many rounds and launches a study needs."""
