"""A trial that shows whether counters are right here: tasks with known answers are counted, and the counts judged."""
