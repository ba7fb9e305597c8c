"""Where antagonists sit, in words."""

WORDS = {
    "": "where placement puts them",
    "cpu": "on its own CPUs",
    "smt": "on its siblings",
    "core": "on close cores",
    "llc": "further off in its cache",
    "socket": "in another cache",
    "other-socket": "on another socket",
}
AXIS = {  # below an axis, in lines
    "": "as placement\nhas it",
    "cpu": "the same\nCPUs",
    "smt": "siblings:\nsame cores",
    "core": "close cores:\nsame cache",
    "llc": "further off,\nsame cache",
    "socket": "another cache,\nsame socket",
    "other-socket": "another\nsocket",
}
