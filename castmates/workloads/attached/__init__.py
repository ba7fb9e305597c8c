"""Follows the training steps of a Python program that is not changed for it; standard library only, Python 3.10 on.

`start/sitecustomize.py` is what Python runs at its start. Whatever fails here is one line on stderr, and the program
goes on: it is never ended by what follows it.
"""
