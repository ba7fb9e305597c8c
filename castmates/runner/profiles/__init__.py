"""How leads are asked for a trace of their steps, and what a profile launch comes to."""
