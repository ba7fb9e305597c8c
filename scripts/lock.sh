#!/usr/bin/env bash
# `make lock`: resolve every environment anew. The locks carry hashes and hold on all supported Pythons.
set -euo pipefail
cd "$(dirname "$0")/.."
options=(--quiet --upgrade --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock")
framework=(pyproject.toml --extra build --extra sweep --extra trace)
uv pip compile "${framework[@]}" "${options[@]}" -o envs/castmates.lock
uv pip compile "${framework[@]}" --extra dev --extra papi -c envs/castmates.lock \
  --overrides envs/dev.overrides "${options[@]}" -o envs/dev.lock
uv pip compile "${framework[@]}" --extra slurm -c envs/castmates.lock "${options[@]}" -o envs/slurm.lock
uv pip compile "${framework[@]}" --extra kubernetes -c envs/castmates.lock "${options[@]}" -o envs/kubernetes.lock
uv pip compile "${framework[@]}" --extra docs -c envs/dev.lock "${options[@]}" -o envs/docs.lock
cd envs
uv pip compile compiler.in "${options[@]}" -o compiler.lock
jobs=(--overrides tfmodels.overrides "${options[@]}")
uv pip compile tfmodels.in --overrides tfmodels-cpu.overrides "${jobs[@]}" -o tfmodels.lock
uv pip compile tfmodels-cuda.in "${jobs[@]}" -o tfmodels-cuda.lock
uv pip compile torch.in --emit-find-links "${options[@]}" -o torch.lock
uv pip compile torch-cuda.in "${options[@]}" -o torch-cuda.lock
uv pip compile jax.in "${options[@]}" -o jax.lock
uv pip compile llama.in "${options[@]}" -o llama.lock
cd ../tests/mutation
uv pip compile environment.in -c ../../envs/dev.lock "${options[@]}" -o environment.lock
