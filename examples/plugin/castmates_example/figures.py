"""The figures that this package adds; imported when a sweep starts, so the drawing code is in other modules."""

from castmates.report.figures.index import View

LAUNCHES = View("From launch to launch", "health", drawn_by="castmates_example.launches")
