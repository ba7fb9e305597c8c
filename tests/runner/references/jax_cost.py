"""Runs a program of JAX until it calls the function of this name, and prints what XLA counts of it.

Nothing of Castmates is here.
"""

import functools
import json
import os
import runpy
import sys

import jax

script, name = sys.argv[1:3]
plain = jax.jit


@functools.wraps(plain)
def jit(function=None, **options):
    if function is None:
        return functools.partial(jit, **options)
    compiled = plain(function, **options)
    if function.__name__ != name:
        return compiled

    def called(*words):
        found = compiled.lower(*words).compile().cost_analysis()
        os.write(1, json.dumps(found.get("flops", 0) + found.get("transcendentals", 0)).encode())
        os._exit(0)

    return called


jax.jit = jit
sys.argv = [script]
runpy.run_path(script, run_name="__main__")
