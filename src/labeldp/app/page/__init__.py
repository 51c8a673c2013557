"""The page: the whole job in a browser. Every step calls the functions of the command line."""

from labeldp.app.page.application import build_app
from labeldp.app.page.chosen_folder import ChosenFolder
from labeldp.app.page.serving import serve
from labeldp.app.page.site import IDLE, LEAVE, Site
from labeldp.app.page.work import Work

__all__ = ["IDLE", "LEAVE", "ChosenFolder", "Site", "Work", "build_app", "serve"]
