"""The studio: from a private table to a page for the public in a browser, with nothing leaving the machine.

The plan file is the state. Whatever a page does could be done in an editor and on the command line, and what is done
there is seen here. Pages are plain forms; a small script of our own only makes them quicker.
"""

from treetop.addons.studio.guard import RedirectFile
from treetop.addons.studio.server import opened, serve

__all__ = ["RedirectFile", "opened", "serve"]
