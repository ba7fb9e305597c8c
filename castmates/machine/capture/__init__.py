"""A whole machine in one file, without anything that shows whose it is; and a file like that in place of a machine."""
