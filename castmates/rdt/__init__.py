"""Cache partitions and occupancy (Intel RDT, AMD QoS)."""
