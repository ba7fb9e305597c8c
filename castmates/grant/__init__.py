"""What root gives a user once, so that sweeps run without root; and how it is taken back."""
