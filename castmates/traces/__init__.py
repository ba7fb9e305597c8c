"""Traces of profilers, read without the frameworks that wrote them."""
