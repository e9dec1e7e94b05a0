# The paper's 200 numbers, printed into a terminal of their own, which nobody sees.
exec script -qec 'seq 1 200' /dev/null >/dev/null
