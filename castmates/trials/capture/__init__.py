"""`castmates doctor --capture`: what kernel files do not show of a machine is asked of its programs, registers and memory."""
