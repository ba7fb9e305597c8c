"""Cache partitions and occupancy through the tool pqos."""
