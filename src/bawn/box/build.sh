#!/bin/sh
# Compiles bawn's C programs into bin/: two beside this file, and the relay of the way out. The wheel (hatch_build.py) and ./install
# both come here. CC and CFLAGS are honoured.
#
# Static, so that the same file is PID 1 in any image, and runs on a host without regard to its libc.
set -eu
cd "$(dirname "$0")"
mkdir -p bin
for source in init.c launch.c ../relay/relay.c; do
    name=$(basename "$source" .c)
    [ "bin/$name" -nt "$source" ] && [ "bin/$name" -nt build.sh ] && continue
    # shellcheck disable=SC2086  # lists of words
    ${CC:-cc} -static -Os -s -std=gnu11 -Wall -Wextra -Werror -fstack-protector-strong \
        -D_FORTIFY_SOURCE=2 ${CFLAGS:-} -o "bin/.$name" "$source"
    mv "bin/.$name" "bin/$name"
done
