"""`python -m castmates`."""

from castmates.cli.main import main

main()
