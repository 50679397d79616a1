"""The version of this distribution."""

__version__ = "1.0.0"
#: header of every HTTP response with the version that made it
HEADER = "Posology-Version"
#: last member of the JSON objects that commands print, with the version that made them
MEMBER = "posology_version"
