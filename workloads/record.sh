#!/bin/sh
# Records real programs with causes, each into DIR/NAME.rec.zst: record.sh DIR, as root, on a machine without other work.
# SCHEDLAB names the program, SCHEDLAB_RECORDER the recorder. Each has a calibration of this machine.
# A program that is not installed is named and left out; a recording above 300 KB is an error.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?usage: record.sh DIR}"
cd "$1"
schedlab=${SCHEDLAB:-$here/../target/release/schedlab}
export SCHEDLAB_RECORDER="${SCHEDLAB_RECORDER:-$here/../target/release/schedlab-recorder}"
scratch=$(mktemp -d)
server=
trap 'if [ "$server" ]; then kill "$server" 2>/dev/null || true; fi; rm -rf "$scratch"' EXIT

# record NAME NEEDED OPTION… -- COMMAND…
record() {
    name=$1 needed=$2
    shift 2
    if ! command -v "$needed" > /dev/null; then
        echo "$name: $needed is not installed; left out"
        return
    fi
    if ! (cd "$scratch" && "$schedlab" record --calibrate -o "$scratch/$name.rec" "$@" > "$scratch/said" 2>&1); then
        cat "$scratch/said" >&2
        exit 1
    fi
    zstd -q -19 -f "$scratch/$name.rec" -o "$name.rec.zst"
    size=$(wc -c < "$name.rec.zst")
    echo "$name.rec.zst: $size bytes"
    [ "$size" -le 300000 ]
}

record hackbench hackbench -- hackbench -g 2 -f 5 -l 20
record sqlite-and-xz sqlite3 -- sh "$here/sqlite-and-xz.sh"
record groff groff -- sh "$here/groff.sh"
if command -v redis-server > /dev/null; then
    redis-server --port 7379 --save '' > /dev/null &
    server=$!
    until redis-cli -p 7379 ping > /dev/null 2>&1; do sleep 0.1; done
    record redis redis-benchmark --pid "$server" -- redis-benchmark -p 7379 -c 20 -n 1800 -q -t get
else
    echo 'redis: redis-server is not installed; left out'
fi
for file in 1 2 3 4; do
    seq 300 | sed "s/.*/int f&_$file(int a) { return a * & + $file; }/" > "$scratch/$file.c"
done
printf 'all: 1.o 2.o 3.o 4.o\n' > "$scratch/Makefile"
record make make -- make -j4
