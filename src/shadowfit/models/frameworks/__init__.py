"""Machines in the terms of simulators and of frameworks that train controllers in them."""
