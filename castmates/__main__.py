"""`python -m castmates`."""

from castmates.cli import main

main()
