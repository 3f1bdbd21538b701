"""Removes a directory tree without `shutil`, whose import costs 3 ms of every run."""

import os


def remove_tree(path: str) -> None:
    """Removes `path` and everything below; follows no link; what will not go is left, silently."""
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    remove_tree(entry.path)
                else:
                    os.unlink(entry.path)
        os.rmdir(path)
    except OSError:
        return
