"""The steps of the workflow: a module per rule, of the rule's name."""
