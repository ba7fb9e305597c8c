"""What lies in results/<study>: paths, records, tables, plans."""
