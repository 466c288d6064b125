"""Where memory lies: one SQLite file, which several processes may use at once."""
