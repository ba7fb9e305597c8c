"""Pure: configuration, mixes, scenes and the plan; touches no file system and no hardware."""
