"""What the proxy can be told.

table    the one table
kinds    how values are written
load     where they come from
"""

from proxy.settings.load import Loaded, SettingsError, load
from proxy.settings.table import SETTINGS, Setting, Settings, markdown

__all__ = ["SETTINGS", "Loaded", "Setting", "Settings", "SettingsError", "load", "markdown"]
