"""Cache partitions and occupancy through the kernel's resctrl."""
