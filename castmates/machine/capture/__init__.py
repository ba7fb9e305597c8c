"""A whole machine in one file, without anything that shows whose machine it is; and such a file in place of a machine."""
