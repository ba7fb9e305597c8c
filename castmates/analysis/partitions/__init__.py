"""What shares of the cache do: attribution, sensitivity, recommendation."""
