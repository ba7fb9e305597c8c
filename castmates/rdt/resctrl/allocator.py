"""Gives members cache ways and memory bandwidth through resctrl: a group each, made once, rewritten for every scene."""

import errno
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial

from castmates.errors import CastmatesError
from castmates.linux.owner import resctrl_group_name
from castmates.machine.topology import parse_cpu_list
from castmates.protocols import Held, HeldOtherwise, ProcessorReadings
from castmates.rdt.resctrl import groups
from castmates.rdt.resctrl.capabilities import capabilities, io_allocation
from castmates.rdt.resctrl.foreign import control_groups, foreign_groups, overlapping
from castmates.rdt.resctrl.mounting import HOW, Mounted, Registers
from castmates.rdt.resctrl.tree import refusal
from castmates.rdt.resctrl.wanted_schemata import (
    MB,
    Schemata,
    differences,
    everything,
    held_words,
    is_decimal,
    loses_ways,
    name_of,
    one_line,
    order_of_writes,
    parse,
    rounded,
    to_change,
    to_write,
    together,
    wanted_schemata,
    within,
)
from castmates.study.spec import REST, Share

HELPERS = "what empties caches"
LISTED = 5  # threads that are named where they are not in their group


class ResctrlAllocator:
    """Drives one mounted resctrl for the members of one launch."""

    name = "resctrl"

    def __init__(self, mounted: Mounted, beyond_site: bool = False) -> None:
        self.tree, self.tasks, self.journal = mounted.tree, mounted.tasks, mounted.journal
        self.options, self.say, self._release = mounted.options, mounted.say, mounted.release
        self.cache = capabilities(mounted.tree, " ".join(mounted.options), family=mounted.family)
        self.groups: dict[str, str] = {}  # member -> its group
        self._domain_of, self._beyond_site = mounted.domain_of, beyond_site
        self._helpers = ""  # the group of those who empty the caches, where they have one
        self._domains: dict[str, Collection[int]] = {}
        self._members: dict[str, Held] = {}
        self._base: dict[str, Schemata] = {}  # what those not named have: what they were found with
        self._former: dict[str, Schemata] = {}  # group that we did not make, and have changed -> what it had
        self._asked: dict[str, Schemata] = {}  # what was last written
        self._now: dict[str, Schemata] = {}  # what was last read back
        self._shown: set[str] = set()
        self._others: list[str] = []  # lines of schemata that are left as they are
        self._registers: Registers | None = None  # of the processor; None where there is none to ask
        if mounted.read_register is not None:
            self._registers = Registers(mounted.read_register, self.tree, self.cache, self._domain_of)
        self._held_otherwise: dict[tuple[Share, ...], list[HeldOtherwise]] = {}  # by shares whose registers were read
        self._shared: dict[tuple[Share, ...], list[str]] = {}  # by shares that were in force: who else has these ways

    def prepare(self, members: Mapping[str, Held]) -> None:
        """Make one group for each member, with what it was found with, and move its processes there; once a launch."""
        schemata = self._read_of("", REST)
        everybody = everything(self.cache, schemata)
        self._others = [line for line in schemata if line not in everybody]
        self._base[REST] = self._now[REST] = {line: values for line, values in schemata.items() if line in everybody}
        found = {name: {} if self._beyond_site else self._found(held, schemata) for name, held in members.items()}
        self._base |= {name: within(everybody, own) for name, own in found.items()}
        self._domains = {name: self._caches_of(name, held) for name, held in members.items()}
        self._domains[REST] = {domain for domains in self._domains.values() for domain in domains}
        self._members = dict(members)
        self._find_groups(list(members))
        self._find_classes()
        self._set({name: self._base[name] for name in members})
        for name, path in self.groups.items():
            if path not in self._former:  # lines that we leave alone are not wider in our groups either
                own, there = found[name], self._read(path)
                rest = {line: own[line] for line in self._others if line in own and own[line] != there.get(line)}
                self._write(path, rest, name)
            groups.fill(self.tree, self.tasks, path, members[name], name)
        if wrong := self.misplaced():
            raise CastmatesError(f"{'; '.join(wrong)}: somebody else moves them; end what manages resctrl here.")

    def serve(self, helpers: Sequence[Held]) -> None:
        """Have those who empty the caches reach all that members may fill: in one more group where they need it.

        As tasks of the default group they have its ways alone, on a CPU of another group that group's.
        """
        default = self._read_of("", REST)
        wanted = together([self._base[name] for name in self.groups])
        masks = {line: values for line, values in wanted.items() if not is_decimal(line)}
        if all(within(masks, self._found(held, default)) == masks for held in helpers):
            return
        path = resctrl_group_name(len(self.groups))
        try:
            groups.make(self.tree, self.journal, path, self.say, 0.0)
            self._helpers = path
            self._write(path, to_change(wanted, self._read(path)), HELPERS)
            for held in helpers:
                groups.fill(self.tree, self.tasks, path, held, HELPERS)
        except (CastmatesError, OSError) as error:
            self.say(f"{HELPERS} reaches fewer ways than the members: {getattr(error, 'strerror', None) or error}")

    def apply(self, shares: Sequence[Share]) -> bool:
        """Give out these shares, and what it was found with to who is not named, and prove that the kernel holds them.

        True where a member has lost ways: nothing evicts what lies in them.
        """
        for asked in (share.bandwidth for share in shares if share.bandwidth is not None):
            if (step := rounded(asked, self.cache)) != asked:
                self._say_once(f"a throttle of {asked} becomes {step}: this machine has no step between")
        wanted = wanted_schemata(shares, self._base, self._domains, self.cache)
        if "" not in self._former and wanted[REST] == self._base[REST]:
            del wanted[REST]  # as it was found, and so not ours to write
        before = self._set(wanted)
        self._read_registers(tuple(shares), wanted)
        if shares and tuple(shares) not in self._shared:
            given = [(wanted[name], self._domains[name]) for name in self.groups]
            self._shared[tuple(shares)] = overlapping(self.tree, given)
        return any(loses_ways(before[name], self._now[name]) for name in wanted)

    def read_back(self) -> dict[str, str]:
        """Read the schemata now in force, by member, in one line of the kernel's words; "" where the group is gone."""
        rest = {REST: ""} if "" in self._former else {}
        schemata: dict[str, str] = {}
        with self.tree.locked(exclusive=False):
            for name, path in (self.groups | rest).items():
                try:
                    schemata[name] = one_line(self._read(path))
                except OSError:
                    schemata[name] = ""
        return schemata

    def processor(self) -> ProcessorReadings:
        """Return what the registers held under each set of shares so far."""
        lacking = self._registers.lacking if self._registers is not None else ""
        how = HOW if self._registers is not None and not lacking else ""
        caches = {name: sorted(domains) for name, domains in self._domains.items()}
        return ProcessorReadings(how, lacking, dict(self._held_otherwise), caches, dict(self._shared), self.cache)

    def misplaced(self) -> list[str]:
        """List in words which threads are not in their member's group."""
        sentences = []
        for name, strays in self._strays().items():
            some = ", ".join(f"{tid} (in {where})" for tid, where in list(strays.items())[:LISTED])
            more = " …" if len(strays) > LISTED else ""
            count = "a thread" if len(strays) == 1 else f"{len(strays)} threads"
            sentences.append(f"{name} has {count} outside of its group {self.groups[name]}: {some}{more}")
        return sentences

    def restore(self) -> None:
        """Put everything back as it was found; safe to call twice."""
        own = [path for path in (*self.groups.values(), self._helpers) if path and path not in self._former]
        steps: list[Callable[[], None]] = [partial(self._reset, path) for path in self._former]
        steps += [partial(groups.remove, self.tree, self.journal, path) for path in own]
        for step in steps:
            try:
                step()
            except CastmatesError as error:  # it stays in the journal, for the next clean-up
                self.say(str(error))
        self._former.clear()
        self.groups.clear()
        self._helpers = ""
        self._members.clear()
        release, self._release = self._release, list
        for sentence in release():
            self.say(sentence)

    def about(self) -> dict[str, str]:
        """Describe what is driven and how."""
        cache, throttle = self.cache, self.cache.bandwidth
        facts = {
            "allocation": "resctrl",
            "mounted with": ", ".join(self.options) or "no options",
            "ways": f"{cache.ways}, masks of {cache.least_ways} or more{', holes allowed' if cache.sparse else ''}",
            "way_bytes": str(cache.way_bytes or "unknown"),
            "ways shared with I/O": f"{cache.shareable:x}",
            "bandwidth": f"{throttle.unit}, from {throttle.least} in steps of {throttle.step}" if throttle else "none",
            "groups": ", ".join(f"{name}: {path}" for name, path in self.groups.items()),
            "groups of others": ", ".join(map(str, foreign_groups(self.tree))) or "none",
            "default group": one_line(self._base.get(REST, {})),
            "left as they are": ", ".join(self._others) or "nothing",
        }
        with suppress(OSError):  # only where there is a throttle, and not on every kernel
            facts["throttle of siblings"] = self.tree.read("info/MB/thread_throttle_mode").strip()
        if ways := io_allocation(self.tree):
            facts["ways of I/O (io_alloc)"] = ways
        return facts

    def _found(self, held: Held, default: Schemata) -> Schemata:
        """Read the class in which a member is found: its group's; in the default group its CPUs may have others."""
        place, others = self.tasks.place(held.pid) if self.tasks.shows_places else None, control_groups(self.tree)
        if place is not None and place.control in others:
            return self._read(place.control)
        for path in others:
            with suppress(OSError):  # it has just been removed
                if set(parse_cpu_list(self.tree.read(f"{path}/cpus_list"))) & set(held.cpus):
                    default = within(default, self._read(path))
        return default

    def _caches_of(self, name: str, held: Held) -> Collection[int]:
        if len(self.cache.domains) == 1:
            return self.cache.domains
        unknown = [cpu for cpu in held.cpus if self._domain_of.get(cpu) not in self.cache.domains]
        if unknown:
            raise CastmatesError(
                f"CPU {unknown[0]} of {name} is in no last-level cache that resctrl knows (their ids are"
                f" {', '.join(map(str, self.cache.domains))}): bring it online, or plan the study anew."
            )
        return {self._domain_of[cpu] for cpu in held.cpus}

    def _find_groups(self, names: Sequence[str]) -> None:
        """Make a group for everyone; a user who may not takes those that root made."""
        for number, name in enumerate(names):
            path = resctrl_group_name(number)
            try:
                groups.make(self.tree, self.journal, path, self.say)
            except OSError as error:
                if self.groups:
                    raise refusal(self.tree, error, f"make the group {path}") from None
                return self._take_delegated(names, error)
            self.groups[name] = path
        return None

    def _take_delegated(self, names: Sequence[str], error: OSError) -> None:
        paths = groups.delegated(self.tree, os.geteuid())
        if len(paths) < len(names):
            advice = (
                f"root gave this user {len(paths)} empty groups and {len(names)} are needed: sudo castmates "
                f"doctor --grant"
                if paths
                else ""
            )
            raise refusal(self.tree, error, f"make {len(names)} groups", advice) from None
        self.groups = dict(zip(names, paths, strict=False))
        for path in self.groups.values():
            self._former[path] = self._read(path)

    def _find_classes(self) -> None:
        """Find the classes of service of all groups, which are still empty; a group that root made is not changed."""
        if self._registers is None:
            return
        for path in self.groups.values():
            write = None if path in self._former else partial(self._write_raw, path)
            self._registers.find_class(path, write)

    def _read_registers(self, shares: tuple[Share, ...], wanted: Mapping[str, Schemata]) -> None:
        """Compare what the processor holds under these shares with what was asked, the first time they are in force."""
        if self._registers is None or not shares or shares in self._held_otherwise:
            return
        paths, found = {REST: ""} | self.groups, []
        for name, schemata in wanted.items():
            differing = self._registers.differences(name, paths[name], schemata, self._domains[name])
            if differing is None:
                return
            found += differing
        self._held_otherwise[shares] = found
        for each in found:
            self._say_once(held_words(each))

    def _set(self, wanted: Mapping[str, Schemata]) -> dict[str, Schemata]:
        """Write everybody's schemata, read all of them back and compare; return what was in force until then.

        That is read too: others may have been given more than we had, whose lines then lie in the ways that go.
        """
        paths = {REST: ""} | self.groups
        for name, schemata in wanted.items():
            self._write_down(name, paths[name], schemata)
        self._asked |= wanted
        with self.tree.locked():
            before = {name: self._read_of(paths[name], name) for name in wanted}
            for name in order_of_writes(wanted, before):
                self._write(paths[name], to_change(wanted[name], before[name]), name)
            after = {name: self._read_of(paths[name], name) for name in wanted}
        for name, schemata in after.items():
            if wrong := differences(wanted[name], schemata, self.cache):
                raise CastmatesError(
                    f"resctrl took what {name_of(name)} was given but shows something else"
                    f" ({'; '.join(wrong)}): another program has changed it (end what manages resctrl here), or the"
                    " kernel has changed a throttle (castmates doctor shows known quirks; leave that one out)."
                )
        self._now |= after
        return before

    def _say_once(self, sentence: str) -> None:
        if sentence not in self._shown:
            self.say(sentence)
        self._shown.add(sentence)

    def _write_down(self, name: str, path: str, schemata: Schemata) -> None:
        """Note in the journal what a group that is not ours will have; ours goes with everything it has."""
        if name == REST:
            self._former.setdefault("", self._base[REST])
        if path in self._former:
            self.journal.announce_schemata(path, one_line(self._former[path]), one_line(schemata))

    def _reset(self, path: str) -> None:
        """Give a group that we did not make what it had, unless others have changed it; empty one of ours."""
        name = next((name for name, own in self.groups.items() if own == path), REST)
        ours = [known[name] for known in (self._now, self._asked) if name in known]
        try:
            with self.tree.locked():
                if path:
                    self._empty(path)
                there = self._read(path)
                if ours and all(differences(schemata, there, self.cache) for schemata in ours):
                    where = path or "the default group"
                    self.say(f"{where} of resctrl was changed by somebody else and is left as it is: {one_line(there)}")
                elif differences(self._former[path], there, self.cache):
                    self._write(path, to_change(self._former[path], there), name)
        except OSError as error:
            if error.errno not in groups.NOT_HERE:  # else it was unmounted meanwhile, and so reset
                raise refusal(self.tree, error, f"put back what {name_of(name)} had") from None
        self.journal.strike(path)

    def _empty(self, path: str) -> None:
        """Send who still lives in a delegated group back to the default one, where that is allowed."""
        for tid in self.tree.read(f"{path}/tasks").split():
            with suppress(OSError):
                self.tree.write("tasks", f"{tid}\n")

    def _write_raw(self, path: str, schemata: Schemata) -> None:
        if (throttle := self.cache.bandwidth) and MB in schemata:
            schemata |= {MB: {domain: throttle.to_show(value) for domain, value in schemata[MB].items()}}
        self.tree.write(f"{path}/schemata".lstrip("/"), to_write(schemata))

    def _write(self, path: str, schemata: Schemata, name: str) -> None:
        if not schemata:
            return
        try:
            self._write_raw(path, schemata)
        except OSError as error:
            asked = one_line(schemata)
            raise refusal(self.tree, error, f"give {name_of(name)} {asked}", self._why_refused(error, path)) from None

    def _why_refused(self, error: OSError, path: str) -> str:
        if not path and error.errno == errno.EACCES:
            return (
                "the masks of the default group are root's: `sudo castmates doctor --grant --default-group` "
                "hands them over, or"
                " write `rest: all` under 'cache' in the study, which leaves them alone"
            )
        exclusive = [str(group) for group in foreign_groups(self.tree) if group.exclusive]
        return f"{', '.join(exclusive)} keeps ways for itself: have its owner end" if exclusive else ""

    def _read(self, path: str) -> Schemata:
        return parse(self.tree.read(f"{path}/schemata".lstrip("/")))

    def _read_of(self, path: str, name: str) -> Schemata:
        try:
            return self._read(path)
        except OSError as error:
            raise refusal(self.tree, error, f"read what {name_of(name)} has") from None

    def _strays(self) -> dict[str, dict[int, str]]:
        """Find the threads outside of their member's group, and where they are."""
        strays_of = {}
        threads = self.tasks.threads(list(self._members.values()))
        for name, path in self.groups.items():
            places = groups.places(self.tree, self.tasks, threads[self._members[name].pid], path)
            if strays := {tid: where for tid, where in places.items() if where != path}:
                strays_of[name] = {tid: where or "the default group" for tid, where in strays.items()}
        return strays_of if self.tasks.shows_places or not strays_of else self._still_there(strays_of)

    def _still_there(self, strays: Mapping[str, dict[int, str]]) -> dict[str, dict[int, str]]:
        """Leave out threads that have ended since they were listed: no group's list has them any more."""
        threads = self.tasks.threads([self._members[name] for name in strays])
        left = {
            name: {tid: where for tid, where in some.items() if tid in threads[self._members[name].pid]}
            for name, some in strays.items()
        }
        return {name: some for name, some in left.items() if some}
