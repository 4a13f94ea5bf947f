"""Programs that come with the package and show it at work."""
