"""Recurrent layers and rotary positions, however they are written."""
