"""The machines that the lab emulates: a kernel, and what its processor has."""

from tests.lab.kit.boot import Shape

SKYLAKE_SP, SAPPHIRE_RAPIDS = "model=85,stepping=4", "model=143,stepping=8"
TIED = "tied=0x600,steep=1"
OBEYS = "obey=1,way=65536,scale=4096,truth=20000"
ALL_ON = "rdt=l3cat,cmt,mbmtotal,mbmlocal"
# What a processor may do wrong: what it is set to on the machine that obeys, by the name of the machine.
FAULTS = {
    "leak": "leak=4",  # one fill in four ignores its mask (SKZ18)
    "ahead": "ahead=4",  # a miss brings in four lines more, in any way
    "policy": "policy=1",  # lines that were used again are kept
    "slack": "slack=70",  # only delays of more do something
    "steep": "steep=1",  # delays of 20 and 30 become 10
    "blind": "blind=1",  # no id counts but the default group's
    "tied": "tied=0xc00",  # a mask has all ways of I/O or none
}

SHAPES = {
    shape.name: shape
    for shape in (
        Shape("linux-6.1", "6.1"),
        Shape("linux-6.12", "6.12"),
        Shape("linux-7.2", "7.2"),
        Shape("two-sockets", "6.12", sockets=2),
        Shape("two-sockets-6.1", "6.1", sockets=2),
        Shape("cat-only", "6.1", "cbm=11,share=0x600,way=1572864,mba=0,cmt=0,mbm=0,cdp=0,pmu=0"),
        Shape("monitoring-only", "6.1", "cat=0,mba=0,cdp=0"),
        Shape("sparse", "6.12", "noncont=1"),  # masks may have holes
        Shape("two-sockets-sparse-7.2", "7.2", "noncont=1", sockets=2),
        # 3 besides the default one, and 1.5 MiB of cache, which are soon evicted.
        Shape("few-groups", "6.1", "clos=4,mbaclos=4,rmid=8,way=131072"),
        Shape("no-rdt", "6.1", None),
        # A client's, which has no RDT either; PAPI 6.0 knows it.
        Shape("skylake", "6.1", "cat=0,mba=0,cmt=0,mbm=0,cdp=0", model="model=94,stepping=3"),
        # What Linux hides there, and what it shows when it is told to: ways that are tied, throttles that are rounded.
        Shape("skylake-sp", "6.1", "cbm=11,share=0x600", model=SKYLAKE_SP),
        Shape("skylake-sp-told", "6.12", f"cbm=11,share=0x600,{TIED}", model=SKYLAKE_SP, words=ALL_ON),
        # It also has masks of each core's own cache. The kernel would want more of its counters than there are.
        Shape("sapphire-rapids", "7.2", "clos=15,mbaclos=15,l2=16,l2clos=8,pmu=0", model=SAPPHIRE_RAPIDS),
        Shape("small-cache", "6.1", "way=131072"),  # 1.5 MiB
        # Its caches are simulated line by line and take guest time: masks give speed back there. 768 KiB.
        Shape("obeying", "6.12", OBEYS, memory=3072),
        Shape("server", "6.12", f"{OBEYS},way=524288", memory=3072),  # the same with 6 MiB, for whole sweeps
        *(Shape(name, "6.12", f"{OBEYS},{fault}", memory=3072) for name, fault in FAULTS.items()),
    )
}
