"""What a paper needs: figures, LaTeX tables, methods, an RO-Crate."""
