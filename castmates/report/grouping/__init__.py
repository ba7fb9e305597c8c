"""What `castmates advice --place` shows: sentences, rows of tables, a figure and a page."""
