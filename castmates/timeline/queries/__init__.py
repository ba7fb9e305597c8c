"""SQL over traces: views of their tables, and named queries (docs/tracing-query.md)."""
