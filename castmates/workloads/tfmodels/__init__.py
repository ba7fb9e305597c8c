"""Model Garden jobs; run inside the `tfmodels` environment."""
