"""The page: the whole job in a browser, on one's own machine. Every step calls what the command line calls."""

from labeldp.app.page.application import build_app
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.serving import serve
from labeldp.app.page.site import IDLE, LEAVE, Site
from labeldp.app.page.work import Work

__all__ = ["IDLE", "LEAVE", "ChosenFolder", "Site", "Work", "build_app", "serve"]
