"""How many rounds and blocks a study needs."""
