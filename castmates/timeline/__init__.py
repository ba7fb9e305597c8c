"""One trace of everything: what members, threads, CPUs and the machine did, on one clock."""
