"""What to expect of an ε before any label is read: from bounds, the number of rows, and public figures."""

from labeldp.planning.outlook import Outlook, Preview, preview
from labeldp.planning.suite import Kept

__all__ = ["Kept", "Outlook", "Preview", "preview"]
