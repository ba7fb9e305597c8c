"""What came out, how sure it is, and what to do next: the same for the page and for the terminal."""
