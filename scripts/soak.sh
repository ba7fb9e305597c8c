#!/usr/bin/env bash
# `make soak TEST=tests/real/test_some.py`: a test with real processes, 50 times under conditions that it should not care
# about: two busy loops beside it, unbuffered output, another locale, a long TMPDIR, another order each time.
set -uo pipefail
cd "$(dirname "$0")/.."
times=${TIMES:-50}
work=$(mktemp -d)
export TMPDIR=$work/a-folder-for-temporary-files-whose-name-is-much-longer-than-that-of-most-others
mkdir -p "$TMPDIR"
export PYTHONUNBUFFERED=1 LANG=C LC_ALL=C
loops=()
for _ in 1 2; do
  timeout 3h sh -c 'while :; do :; done' &
  loops+=($!)
done
trap 'kill "${loops[@]}" 2>/dev/null; rm -rf "$work"' EXIT
failed=0
for round in $(seq "$times"); do
  if ! .venv/bin/python -m pytest -q -p no:cacheprovider --shuffle "$round" "$@" >"$work/output" 2>&1; then
    failed=$((failed + 1))
    echo "--- round $round failed (--shuffle $round)"
    cat "$work/output"
  fi
done
echo "$failed of $times rounds failed"
[ "$failed" -eq 0 ]
