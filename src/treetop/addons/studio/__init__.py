"""The studio: from a private table to a page for the public in a browser, with nothing leaving the machine.

The plan file is the state. Every action of a page can be done in an editor and on the command line as well, and pages
show those changes. Pages are plain forms; a small script only makes them quicker.
"""

from treetop.addons.studio.guard import RedirectFile
from treetop.addons.studio.server import opened, serve
from treetop.addons.studio.templates import templates

__all__ = ["RedirectFile", "opened", "serve", "templates"]
