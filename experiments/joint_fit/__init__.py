"""The joint fit: errors of all tables of six attributes, when every table of one and two attributes was measured."""
