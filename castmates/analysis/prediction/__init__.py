"""What a job loses beside others: measured, or predicted from what was measured."""
