"""What a localization leaves on disk and on the screen."""
