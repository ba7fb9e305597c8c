"""A trial that shows what masks, throttles, eviction and readings of the caches do on this machine."""
