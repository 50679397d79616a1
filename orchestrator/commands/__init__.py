"""The commands of ``posology``, by what they are about. Heavy libraries are imported where they are used."""
