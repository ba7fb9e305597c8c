"""The command `castmates`: a module per command, listed in main.py."""
