#!/bin/bash
# Records what perf prints here: software events alone count on the virtual machine where this was run.
# usage: record.sh FOLDER (as root; German messages need the locale: localedef -i de_DE -f UTF-8 "$LOCPATH/de_DE.UTF-8")
set -u
cd "$1" || exit 1
perf --version >version.txt
events=task-clock,page-faults,instructions
for form in json csv; do
    as=$([ $form = json ] && echo "-j" || echo "-x,")
    name() { echo "$1.$form.txt"; }
    perf stat $as -e $events -o "$(name plain)" -- true
    perf stat $as -e $events -I 50 -o "$(name interval)" -- sleep 0.12
    perf stat $as -e task-clock,page-faults -I 50 --summary -o "$(name summary)" -- sleep 0.12
    perf stat $as -e $events -a -A -o "$(name per-cpu)" -- sleep 0.05
    perf stat $as -e $events -a --per-core -o "$(name per-core)" -- sleep 0.05
    perf stat $as -e $events -a --per-core -I 50 -o "$(name per-core-interval)" -- sleep 0.06
    perf stat $as -e $events -a --per-socket -o "$(name per-socket)" -- sleep 0.05
    perf stat $as -e $events -a --per-node -o "$(name per-node)" -- sleep 0.05
    yes >/dev/null & busy=$!
    perf stat $as -e $events --per-thread -p $busy -o "$(name per-thread)" -- sleep 0.05
    kill $busy
    perf stat $as -e $events -r 3 -o "$(name repeat)" -- true
    perf stat $as -e task-clock,page-faults -a --for-each-cgroup / -o "$(name cgroup)" -- sleep 0.05
    LC_ALL=de_DE.UTF-8 perf stat $as -e $events -o "$(name decimal-comma)" -- true
    LC_ALL=de_DE.UTF-8 perf stat $as -e $events -r 2 -I 50 -o "$(name decimal-comma-interval)" -- sleep 0.06
done
perf stat -x ';' -e $events -a -A -I 50 -o semicolon.csv.txt -- sleep 0.06
