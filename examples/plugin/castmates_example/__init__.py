"""An example of a plug-in for Castmates."""
