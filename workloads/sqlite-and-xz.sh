#!/bin/sh
# Four sqlite3 processes commit rows one by one to one database (WAL mode, a sync per commit) while xz compresses with three threads.
rm -f clients.db clients.db-wal clients.db-shm
sqlite3 clients.db 'PRAGMA journal_mode=WAL; CREATE TABLE account(client INTEGER, row INTEGER, note TEXT);' > /dev/null
client() {
    {
        echo '.timeout 2000'
        echo 'PRAGMA synchronous=FULL;'
        for row in $(seq 100); do
            echo "INSERT INTO account VALUES ($1, $row, hex(randomblob(2000)));"
            if [ $((row % 10)) = 0 ]; then echo 'SELECT count(*), sum(length(note)) FROM account;'; fi
        done
    } | sqlite3 clients.db > /dev/null
}
seq 700000 | xz -3 -T3 --block-size=400000 > /dev/null &
for client in 1 2 3 4; do client $client & done
wait
