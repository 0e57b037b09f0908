"""Whether mixed precision is there."""


def amp_definitely_not_available() -> bool:
    """False: it is."""
    return False
