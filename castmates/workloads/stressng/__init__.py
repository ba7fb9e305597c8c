"""The keeper of stress-ng's stressors, `python -m castmates.workloads.stressng`."""
