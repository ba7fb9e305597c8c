"""What `castmates place` shows: sentences, rows of tables, a figure and a page."""
