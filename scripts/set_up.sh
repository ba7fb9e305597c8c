#!/usr/bin/env bash
# `make` calls this: installs a lock into .venv by uv, checks the hashes, and prints a line when it is done.
#   set_up.sh NAME LOCK
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1 lock=$2 begun=$SECONDS log=.venv/set-up.log
python=.venv/bin/python uv=.venv/bin/uv
: >"$log"
trap 'status=$?; [ $status = 0 ] || { tail -n 20 "$log"; echo "castmates: $lock could not be installed into .venv; the lines above give the reason (all of them: $log), and the same command goes on."; } >&2' EXIT
# The first package is uv, as the framework's lock has it: pip, which checks its hash, installs nothing else.
sed -n '/^uv==/,/[^\\]$/p' envs/castmates.lock >.venv/uv.txt
"$python" -m pip --disable-pip-version-check install --quiet --no-deps --require-hashes -r .venv/uv.txt >>"$log" 2>&1
# uv does not read pip's configuration; an index that is chosen there is meant for both.
index=${PIP_INDEX_URL:-$("$python" -m pip config get global.index-url 2>/dev/null || true)}
[ -z "$index" ] || export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$index}
# A lock is whole by itself: what it leaves out is left out on purpose (envs/*.overrides).
"$uv" pip install --python "$python" --no-deps --require-hashes -r "$lock" >>"$log" 2>&1
[ "$lock" != envs/castmates.lock ] ||
  "$uv" pip install --python "$python" --no-deps --no-build-isolation --editable . >>"$log" 2>&1
packages=$(find .venv/lib/python*/site-packages -maxdepth 1 -name '*.dist-info' | wc -l)
printf ' ✓ %-14s %-52s %7s\n' "$name" "$packages packages in .venv" "$((SECONDS - begun)) s" >&2
