"""Numbers as sentences and rows; draws nothing."""
