"""Add-ons: pages for the public, the studio, clusters and the lab. No module of the core imports them."""
