"""The documentation's site: pages that are generated, links that are checked, examples that are run."""
