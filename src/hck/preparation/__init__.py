"""From what users have to points and right-hand sides: categories, scaling, labels, trends."""
