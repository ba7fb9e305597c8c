"""What this machine can and cannot do, and what to do about it."""
