"""What our own parts cost and gain: ratios and shares measured side by side in one run; `make benchmarks` runs all."""
