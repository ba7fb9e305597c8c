"""What `castmates plan` prints before anything runs."""
