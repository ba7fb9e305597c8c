"""What pairs that were not measured would lose: fitted to those that were."""
