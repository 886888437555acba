"""Gymnasium environments: thin skins over the fleet and its interface."""
