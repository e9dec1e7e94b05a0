#!/bin/sh
# ngspice simulates a ring oscillator of five MOS inverters for 1.5 us, and writes what it found.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
{
    echo 'ring oscillator'
    echo '.model nm nmos level=1 vto=0.7 kp=110u lambda=0.04'
    echo '.model pm pmos level=1 vto=-0.7 kp=50u lambda=0.05'
    echo 'vdd vdd 0 dc 5'
    for stage in 1 2 3 4 5; do
        next=$((stage % 5 + 1))
        echo "mp$stage n$next n$stage vdd vdd pm w=20u l=1u"
        echo "mn$stage n$next n$stage 0 0 nm w=10u l=1u"
        echo "c$stage n$next 0 50f"
    done
    echo '.ic v(n1)=0'
    echo '.control'
    echo 'tran 20p 1500n uic'
    echo "write $dir/ring.raw v(n1)"
    echo 'quit'
    echo '.endc'
    echo '.end'
} > "$dir/ring.cir"
ngspice -b "$dir/ring.cir" > /dev/null 2>&1
