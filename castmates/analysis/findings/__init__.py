"""What is worth knowing of a study: rules and tables -> findings."""
