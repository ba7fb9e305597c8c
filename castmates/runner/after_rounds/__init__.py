"""What a block measures after its rounds."""
