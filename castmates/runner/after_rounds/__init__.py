"""What a launch measures after its rounds."""
