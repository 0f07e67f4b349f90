"""Campaigns and traces of one command."""
