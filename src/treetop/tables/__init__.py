"""Tables in, from files, databases and Arrow streams, batch by batch; nothing here knows what a column means."""
