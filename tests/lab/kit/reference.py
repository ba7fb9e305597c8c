"""Some 250 operations on resctrl, whose outcomes on several kernels are recorded in tests/data/resctrl.

Their order matters: what a kernel prints depends on what was done before. For a guest with one socket and 4 CPUs.
"""

import itertools
import os
import subprocess
import time

from tests.lab.kit.transcript import ERROR, ROOT, UNAVAILABLE, Transcript, code, in_one_line, read, spoil

t = Transcript()
GROUP = "g1"
SCHEMATA, TASKS, MODE, CPUS = (f"{GROUP}/{name}" for name in ("schemata", "tasks", "mode", "cpus_list"))
MONITORING = f"{GROUP}/mon_groups/m1"
DATA = f"{GROUP}/mon_data/mon_L3_00"
OCCUPANCY = f"{DATA}/llc_occupancy"
THRESHOLD = "info/L3_MON/max_threshold_occupancy"
LONG, LONGER = "x" * 255, "x" * 256
# One resource, all that can be wrong with a line and a mask; then domains, bandwidth, several lines, other resources.
LINES = (
    *("L3:0=f\n", "L3:0=f", "L3:0=ff0\n", "L3:0=0xff\n", "L3:0=FF\n", "L3: 0 = f \n", "  L3:0=f\n", "L3:0=f \n"),
    *("l3:0=f\n", "L3:0=0\n", "L3:0=5\n", "L3:0=f0f\n", "L3:0=1000\n", "L3:0=1fff\n", "L3:0=fffffffff\n", "L3:0=g\n"),
    *("L3:0=\n", "L3:0\n", "L3:\n", "L3\n", "L3=0=f\n", ":0=f\n", "\n", "", "\n\n"),
    *("L3:1=f\n", "L3:7=f\n", "L3:x=f\n", "L3:0=f;0=3\n", "L3:0=f;1=3\n", "L3:0=f;\n", "L3:;0=f\n", "L3:0=f;;\n"),
    *("L2:0=f\n", "MB:0=50\n", "MB:0=55\n", "MB:0=5\n", "MB:0=0\n", "MB:0=9\n", "MB:0=10\n", "MB:0=100\n"),
    *("MB:0=101\n", "MB:0=abc\n", "MB:0=0x32\n", "MB:0=-10\n", "MB:0=+20\n", "MB:0=20.5\n", "MB:0=99999999999\n"),
    *("L3:0=3\nMB:0=30\n", "MB:0=40\nL3:0=c\n", "L3:0=30\nMB:0=500\n", "L3:0=3\nL3:0=7\n", "L3:0=1\nL3:0=5\n"),
    *("L3CODE:0=f\n", "L3DATA:0=f\n", "#\n", "L3:0=f\r\n", "L3:0=f\0\n"),
)


def main():
    mount_options()
    names()
    schemata()
    exclusive()
    one, other = tasks()
    monitoring_groups(other)
    cpus()
    monitoring(one)
    limits()
    new_groups()
    exclusive_again()
    users()
    unmounting()
    code_and_data()
    other.kill()
    os.system("pkill sleep")


def mount_options():
    t.heading("mount options")
    t.shell(f"ls -la {ROOT}")
    for option in ("nonsense", "cdpl2", "mba_MBps", "debug"):
        if mount(option) == 0:
            t.shell("grep resctrl /proc/mounts")
            umount()
    mount()
    t.shell("grep resctrl /proc/mounts")
    mount()
    t.shell("grep -c resctrl /proc/mounts")
    t.shell("mkdir -p /tmp/r2; mount -t resctrl x /tmp/r2")
    t.heading("tree")
    t.shell(f"cd {ROOT} && find . -printf '%M %s %P\\n' | sort -k3")
    each = "for f in $(find . -type f -readable | sort)"
    t.shell(f"""cd {ROOT}/info && {each}; do echo "--- $f: $(cat $f 2>&1 | tr '\\n' '|')"; done""")
    shown = """for f in cpus cpus_list mode schemata size; do echo "--- $f: $(cat $f | tr '\\n' '|')"; done"""
    t.shell(f"cd {ROOT} && {shown}; wc -l < tasks; head -c 20 tasks | tr '\\n' ' '")


def names():
    t.heading("mkdir / rmdir / names")
    for path in (GROUP, GROUP, "info", "mon_groups", "mon_data", "a\nb", LONG, LONGER, f"{GROUP}/sub", "mon_data/x"):
        t.make(path)
    for path in ("info/x", f"{GROUP}/mon_groups/mon_groups", MONITORING, f"{MONITORING}/x", ".hid", "sp ace", "ünï"):
        t.make(path)
    t.shell(f'cd {ROOT}/{GROUP} && find . -printf "%M %P\\n" | sort -k2')
    shown = 'for f in cpus cpus_list mode schemata size tasks; do echo "--- $f: $(cat $f | tr "\\n" "|")"; done'
    t.shell(f"cd {ROOT}/{GROUP} && {shown}")
    for path in ("info", f"{GROUP}/mon_data", "mon_groups", "nope", LONG, LONGER, ".hid", "sp ace", "ünï", "a\nb"):
        t.remove(path)
    t.do(f"unlink {SCHEMATA}", os.unlink, ROOT / SCHEMATA)
    t.do("create g1/foo", lambda: (ROOT / "g1/foo").open("w").close())
    rename("g1", "g2")
    rename(MONITORING, "mon_groups/m1")
    rename(MONITORING, "g1/mon_groups/m2")
    t.do("symlink", os.symlink, "/x", ROOT / "ln")
    t.do("chmod g1/tasks 0666", os.chmod, ROOT / TASKS, 0o666)
    t.do("chown g1/tasks 1", os.chown, ROOT / TASKS, 1, 1)
    t.do("truncate open g1/schemata", lambda: (ROOT / SCHEMATA).open("w").close())
    t.do("append open", lambda: (ROOT / SCHEMATA).open("a").close())
    t.shell(f"ls -l {ROOT}/{TASKS}")


def schemata():
    t.heading("schemata")
    t.write_each(SCHEMATA, *LINES)
    t.say(in_one_line("g1/size"))
    t.write_each("schemata", "L3:0=1\n", "L3:0=fff\n")
    fd = os.open(ROOT / SCHEMATA, os.O_WRONLY)
    t.say("write 9000 bytes ->", result(os.write, fd, ("L3:0=f\n" * 2000)[:9000].encode()))
    t.say(read("info/last_cmd_status").rstrip("\n"))
    for part in (b"L3:0=", b"ff\n"):
        t.say("partial write", part, result(os.write, fd, part))
    os.close(fd)
    t.say(in_one_line(SCHEMATA))
    file = ROOT / SCHEMATA
    t.shell(f'printf "L3:0=7\\nMB:0=20\\n" > {file}; cat {file}')
    t.shell(f'echo "L3:0=5" > {file}; cat {ROOT}/info/last_cmd_status')
    t.shell(f"bash -c 'echo \"L3:0=bad!\" >{file}'")
    t.heading("last_cmd_status")
    t.write("info/last_cmd_status", "x\n")
    t.write(SCHEMATA, "L3:0=f\n")


def exclusive():
    t.heading("mode / exclusive")
    t.make("g2")
    t.write_each(MODE, "shareable\n", "shareable", "exclusive\n", "pseudo-locksetup\n", "pseudo-locked\n", "foo\n", "")
    t.write_each(MODE, "EXCLUSIVE\n", "exclusive", "shareable\n")
    t.write_each("schemata", "L3:0=ff0\n")
    t.write_each("g2/schemata", "L3:0=ff0\n")
    t.write_each(SCHEMATA, "L3:0=f\n")
    t.write_each(MODE, "exclusive\n")
    bit_usage()
    t.write_each("g2/schemata", "L3:0=3c\n")
    t.write_each(SCHEMATA, "L3:0=1f\n", "L3:0=7\n")
    t.write_each(MODE, "shareable\n")
    t.write_each("g2/schemata", "L3:0=e00\n")
    t.write_each("g2/mode", "exclusive\n")
    t.write_each("schemata", "L3:0=1f0\n")
    t.write_each("g2/mode", "exclusive\n")
    t.write_each("g2/schemata", "L3:0=200\n")
    t.write_each("g2/mode", "exclusive\n")
    bit_usage()
    t.make("g3")
    t.say(in_one_line("g3/schemata"))
    t.remove("g3")
    t.write_each("schemata", "L3:0=fff\n")
    t.write("g2/mode", "shareable\n")
    t.write_each("schemata", "L3:0=fff\n")
    t.write_each("mode", "exclusive\n")
    t.remove("g2")


def tasks():
    t.heading("tasks")
    one, other = start("sleep 1000"), start("sleep 500 & wait")
    time.sleep(0.5)
    t.call(one.pid, "<C>")
    t.call(other.pid, "<C2>")
    a, b = one.pid, other.pid
    t.write_each(TASKS, f"{a}\n", f"{a}", f"{a}\n{b}\n", f"{a},{b}\n", f"{a} {b}\n")
    for text in ("999999\n", "4194305\n", "-1\n", "abc\n", "\n", ""):
        t.write(TASKS, text)
    t.write_each(TASKS, f" {a} \n", f"{a:#x}\n", f"{b}\n", f"{b},999999\n", "2\n")
    t.write("tasks", "2\n")
    t.shell(f"cat {ROOT}/{TASKS} | wc -l; cat /proc/{a}/cpu_resctrl_groups")
    t.say("0 -> self:")
    t.write(TASKS, "0\n")
    t.say("self in g1:", is_in(os.getpid()))
    t.write("tasks", f"{os.getpid()}\n")
    t.say("self in g1:", is_in(os.getpid()))
    start(f"echo $$ > {ROOT}/{TASKS}; sleep 77 & sleep 78 & exec sleep 79")
    time.sleep(1)
    t.say("in g1:", len(read(TASKS).split()))
    os.system('pkill -f "sleep 7[789]"')
    time.sleep(0.3)
    t.say("after kill in g1:", len(read(TASKS).split()))
    return one, other


def monitoring_groups(other):
    t.heading("mon groups")
    pid, inside = f"{other.pid}\n", f"{MONITORING}/tasks"
    t.make(MONITORING)
    t.write_each(inside, pid)
    t.write_each(TASKS, pid)
    t.write_each(inside, pid)
    t.say("ctrl tasks still lists it:", is_in(other.pid))
    t.write("tasks", pid)
    t.say("mon tasks after moving to root:", read(inside).split())
    t.make("mon_groups/rm1")
    t.write_each("mon_groups/rm1/tasks", pid)
    t.write_each(TASKS, pid)
    t.say("mon_groups/rm1:", read("mon_groups/rm1/tasks").split())
    t.write(f"{MONITORING}/schemata", "L3:0=1\n")
    t.shell(f"ls {ROOT}/{MONITORING}")
    where = f"cat /proc/{other.pid}/cpu_resctrl_groups"
    t.shell(where)
    t.write(inside, pid)
    t.shell(where)
    rename(MONITORING, "g1/mon_groups/mX", "m1 -> g1/mon_groups/mX")
    rename("g1/mon_groups/mX", MONITORING, "back")
    rename(MONITORING, "mon_groups/m1", "m1 -> mon_groups/m1 (root)")
    t.shell(f"ls {ROOT}/mon_groups; {where}")


def cpus():
    t.heading("cpus")
    t.write_each(CPUS, "1\n", "1-2\n", "1", "0-1,3\n", "9\n", "0-9\n", "x\n", "\n", "", "2-1\n", "1,1\n")
    t.say("root", read("cpus_list").strip())
    for text in ("6\n", "0x6\n", "f\n", "1f\n", "0\n", "zz\n"):
        t.write("g1/cpus", text, CPUS)
        t.say("   root", read("cpus_list").strip())
    t.write_each(CPUS, "1-2\n")
    t.write_each("cpus_list", "0\n", "0-1\n")
    t.say("g1", read(CPUS).strip())
    inner = "g1/mon_groups/m3"
    t.make(inner)
    t.write_each(f"{inner}/cpus_list", "3\n")
    t.write_each(CPUS, "1-2\n")
    t.write_each(f"{inner}/cpus_list", "1\n")
    t.say("g1", read(CPUS).strip())
    t.write_each(CPUS, "2\n")
    t.say("m3", read(f"{inner}/cpus_list").strip())
    online, lists = "/sys/devices/system/cpu/cpu2/online", f"{ROOT}/{CPUS} {ROOT}/cpus_list"
    t.shell(f"echo 0 > {online}; cat {lists}")
    t.write_each(CPUS, "2\n")
    t.shell(f"echo 1 > {online}; cat {lists}")


def monitoring(one):
    t.heading("monitor data")
    busy = start("while :; do :; done")
    t.call(busy.pid, "<B>")
    t.write(TASKS, f"{one.pid}\n")
    t.write(TASKS, f"{busy.pid}\n")
    time.sleep(2)
    t.write_each(SCHEMATA, "L3:0=3\n", "L3:0=1ff\n")
    t.write(OCCUPANCY, "0\n")
    t.shell(f"cat {ROOT}/info/L3_MON/*")
    t.write_each(THRESHOLD, "0\n", "65536\n", "100000\n", "99999999\n", "x\n")
    for fault, word in ((UNAVAILABLE, "unavailable:"), (ERROR, "error:")):
        spoil("llc_occupancy", range(32), fault)
        t.say(word, read(OCCUPANCY).strip())
    spoil("llc_occupancy", range(32), 0)
    t.say("a number again:", read(OCCUPANCY).strip().isdecimal())
    removal(one, busy)


def removal(one, busy):
    t.heading("removal")
    files = {"schemata": SCHEMATA, "occ": OCCUPANCY, "tasks": TASKS}
    modes = {"occ": os.O_RDONLY}
    open_files = {name: os.open(ROOT / path, modes.get(name, os.O_RDWR)) for name, path in files.items()}
    inside = start("sleep 300", cwd=ROOT / GROUP)
    t.remove(GROUP)
    t.say("tasks went to root:", is_in(one.pid, "tasks"))
    for name, text in (("schemata", b"L3:0=f\n"), ("tasks", f"{one.pid}\n".encode())):
        t.say("write", name, "on removed group:", result(os.write, open_files[name], text))
    for name, fd in open_files.items():
        t.say("read", name, "on removed group:", result(os.pread, fd, 100, 0))
        os.close(fd)
    for process in (inside, busy, one):
        process.kill()
        process.wait()
    t.say("cpus back:", read("cpus_list").strip())


def limits():
    t.write(THRESHOLD, "589824\n")
    t.heading("limits")
    groups = next(n for n in itertools.count() if t.make(f"c{n}") != "OK")
    closids = [read(f"info/{resource}/num_closids").strip() for resource in ("L3", "MB")]
    t.say("ctrl groups made:", groups, "num_closids", *closids, "num_rmids", read("info/L3_MON/num_rmids").strip())
    made = next(n for n in itertools.count() if t.make(f"mon_groups/q{n}", tell_success=False) != "OK")
    t.say("mon groups made:", made)
    for n in range(made):
        (ROOT / f"mon_groups/q{n}").rmdir()
    t.make("mon_groups/again")
    for n in range(groups):
        (ROOT / f"c{n}").rmdir()
    t.remove("mon_groups/again")
    time.sleep(12)  # until the monitoring ids are out of limbo


def new_groups():
    t.heading("new group default schemata after others")
    t.make("a")
    t.write("a/schemata", "L3:0=f\n")
    t.write("schemata", "L3:0=ff0\n")
    t.write("a/mode", "exclusive\n")
    t.make("b")
    t.say(in_one_line("b/schemata"), read("info/L3/bit_usage").strip())
    t.write_each("b/schemata", "L3:0=ff0\n")
    t.write("b/mode", "exclusive\n")
    t.remove("a")
    t.remove("b")
    t.say(in_one_line("schemata"))


def exclusive_again():
    t.heading("exclusive, clean")
    t.make("a")
    t.make("b")
    t.write_each("schemata", "L3:0=3f0\n")
    t.write("a/schemata", "L3:0=f\n")
    t.write_each("a/mode", "exclusive\n")
    t.write("b/schemata", "L3:0=3f0\n")
    t.write_each("a/mode", "exclusive\n")
    bit_usage()
    t.say("size", in_one_line("a/size"))
    t.write_each("b/schemata", "L3:0=1f8\n")
    t.write_each("a/schemata", "L3:0=1f\n", "L3:0=7\n")
    t.write_each("schemata", "L3:0=fff\n")
    t.write_each("b/schemata", "L3:0=8\n")
    t.write_each("a/schemata", "MB:0=50\n")
    t.write("b/schemata", "L3:0=c00\n")
    t.write_each("b/mode", "exclusive\n")
    t.write("b/schemata", "L3:0=8\n")
    t.write_each("b/mode", "exclusive\n")
    t.make("c")
    t.say("new group c gets", in_one_line("c/schemata"))
    bit_usage()
    t.write("a/schemata", "L3:0=c07\n")
    t.write_each("a/mode", "shareable\n")
    for name in ("a", "b", "c"):
        t.remove(name)
    t.write_each("schemata", "L3:0=fff\n")


def users():
    t.heading("pid edge")
    for text in (f"{2**31}\n", f"{2**32 + 1}\n", "1.0\n"):
        t.write("tasks", text)
    theirs = subprocess.Popen(["sleep", "60"], user=65534)
    t.call(theirs.pid, "<N>")
    t.make("p")
    (ROOT / "p/tasks").chmod(0o666)
    told = f"cat {ROOT}/info/last_cmd_status; echo L3:0=1 > {ROOT}/p/schemata"
    move = f"echo {theirs.pid} > {ROOT}/p/tasks; echo rc=\\$?; echo 1 > {ROOT}/p/tasks; echo rc=\\$?"
    t.shell(f'setpriv --reuid 65534 --clear-groups sh -c "{move}; {told}"')
    theirs.kill()
    t.remove("p")
    t.heading("flock")
    t.shell(f"flock -x -w 1 {ROOT} true && echo flock-ok; flock -s -w 1 {ROOT} true && echo sflock-ok")


def unmounting():
    t.heading("umount")
    t.make("keep")
    t.write("keep/schemata", "L3:0=3\n")
    umount()
    mount()
    t.shell(f"ls {ROOT}; cat {ROOT}/schemata")
    umount()


def code_and_data():
    t.heading("cdp")
    mount("cdp")
    seen = f"ls {ROOT}/info {ROOT}/info/L3CODE; cat {ROOT}/schemata {ROOT}/size; cat {ROOT}/info/L3*/num_closids"
    t.shell(f"grep resctrl /proc/mounts; {seen}")
    t.make(GROUP)
    t.write_each(SCHEMATA, "L3CODE:0=3\n", "L3:0=3\n", "L3DATA:0=c\nL3CODE:0=30\n", "L3DATA:0=5\n")
    umount()


def mount(options=""):
    return t.shell(f"mount -t resctrl {f'-o {options}' if options else ''} resctrl {ROOT}")


def umount():
    return t.shell(f"umount {ROOT}")


def start(command, **keywords):
    return subprocess.Popen(["bash", "-c", command], **keywords)


def rename(path, to, what=""):
    t.do(f"rename {what or f'{path} {to}'}", os.rename, ROOT / path, ROOT / to)


def bit_usage():
    t.say("bit_usage", read("info/L3/bit_usage").rstrip("\n"))


def is_in(pid, tasks=TASKS):
    return str(pid) in read(tasks).split()


def result(function, *arguments):
    """What a system call gives, or the name of its error."""
    try:
        given = function(*arguments)
    except OSError as error:
        return code(error)
    return "OK" if given is None else given


if __name__ == "__main__":
    main()
