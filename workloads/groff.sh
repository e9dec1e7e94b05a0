#!/bin/sh
# Two writers format documents one after another with tbl, eqn, pic and troff, as `groff -t -e -p` runs them: manual pages, and the drawings of molecules that come with groff.
manual() {
    for page in bash git-config curl gpg tar; do
        zcat "/usr/share/man/man1/$page.1.gz" | groff -t -e -p -man -Tps > /dev/null 2>&1
    done
}
molecules() {
    for drawing in /usr/share/doc/groff-base/examples/chem/*.chem; do
        groff -R -c -p -e -t -Tps < "$drawing" > /dev/null 2>&1
        chem "$drawing" 2> /dev/null | groff -p -e -t -Tps > /dev/null 2>&1
    done
}
manual &
molecules &
wait
