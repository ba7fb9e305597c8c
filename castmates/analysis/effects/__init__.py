"""Losses of scenes against their baselines, and what flags them."""
