#!/bin/sh
# Records lttng/ anew: needs lttng-tools and liblttng-ust-dev; no module of the kernel.
set -e
cd "$(dirname "$0")"
build=$(mktemp -d)
gcc -I. lttng_steps.c -o "$build/steps" -llttng-ust -ldl -pthread
export LTTNG_HOME="$build"
lttng-sessiond -d --no-kernel
rm -rf lttng
lttng create steps --output="$PWD/lttng"
lttng enable-channel -u c --subbuf-size=16k --num-subbuf=4
lttng enable-event -u -c c 'job:*'
lttng add-context -u -c c -t vpid -t vtid -t procname
lttng start
"$build/steps"
lttng stop
lttng destroy
rm -rf lttng/ust/uid/0/64-bit/index
