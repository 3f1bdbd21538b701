#!/bin/sh
# Compiles bawn's C programs into bin/: two from here, and the relay of the way out. The wheel
# (hatch_build.py) and ./install both come here. CC and CFLAGS are honoured.
#
# Static, so that the same file is PID 1 in any image, and runs on a host without regard to its libc.
set -eu
cd "$(dirname "$0")"
mkdir -p bin
# NAME FILE...: the program, and what it is made of.
build() {
    name=$1
    shift
    # shellcheck disable=SC2012  # our own names
    [ "$(ls -t "bin/$name" build.sh ./*.h "$@" 2>/dev/null | head -n 1)" = "bin/$name" ] && return
    # shellcheck disable=SC2086  # a list of words
    ${CC:-cc} -static -Os -s -std=gnu11 -Wall -Wextra -Werror -fstack-protector-strong \
        -D_FORTIFY_SOURCE=2 ${CFLAGS:-} -o "bin/.$name" "$@"
    mv "bin/.$name" "bin/$name"
}
build init init.c way.c join.c resolve.c wire.c
build launch launch.c
build relay ../relay/relay.c
