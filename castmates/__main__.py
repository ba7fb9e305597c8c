"""`python -m castmates`."""

try:
    from castmates.cli.main import main
except ModuleNotFoundError as problem:
    from castmates.extras import explained

    raise SystemExit(f"castmates: {explained(problem)}") from None
main()
