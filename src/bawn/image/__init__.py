"""What bawn's own images are made of: data, no code.

`agent-base.lock` pins every npm package by version and digest, and names the Debian packages;
`Dockerfile` makes the same from it where there is a registry of images.
"""

import os

_HERE = os.path.dirname(__file__)
LOCK = os.path.join(_HERE, "agent-base.lock")
DOCKERFILE = os.path.join(_HERE, "Dockerfile")
