"""The forms in which Posology publishes its results as JSON; ``docs/schema`` has their schemas."""
