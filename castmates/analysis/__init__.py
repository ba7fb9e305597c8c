"""Pure: windows -> effects with intervals."""
