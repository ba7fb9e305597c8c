"""Events of members, counted by perf_event_open in turns that fit the processor."""
