"""What is counted for a package, or for a CPU whoever runs on it: energy, memory controllers, clocks."""
