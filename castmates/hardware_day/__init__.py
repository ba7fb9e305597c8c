"""`castmates hardware-day`: everything that is to be known of a rented machine, in one command, with an end."""
