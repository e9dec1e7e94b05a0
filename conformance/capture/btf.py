"""Where the members of a kernel's structures lie, from its type information (BTF).

Format: Documentation/bpf/btf.rst. Offsets are in bytes."""

import shutil
import struct
import subprocess
import sys


PACKERS = [("zstd", b"\x28\xb5\x2f\xfd"), ("xz", b"\xfd7zXZ\0"), ("gzip", b"\x1f\x8b\x08"), ("lz4", b"\x02!L\x18")]


def unusable(what):
    print(what, file=sys.stderr)
    raise SystemExit(3)


def unpacked(image):
    """The ELF file inside the bzImage at the path `image`."""
    try:
        data = open(image, "rb").read()
    except OSError as why:
        unusable(f"{image}: {why.strerror}; give the path of a bzImage")
    absent = []
    for command, magic in PACKERS:
        if magic in data and not shutil.which(command):
            absent.append(command)
            continue
        at = -1
        while (at := data.find(magic, at + 1)) >= 0:
            # What follows the compressed part is no error: the tools write before they complain.
            out = subprocess.run([command, "-dc"], input=data[at:], capture_output=True).stdout
            if out.startswith(b"\x7fELF"):
                return out
    if absent:
        print(f"the kernel may be packed by {' or '.join(absent)}: install it with apt-get install", file=sys.stderr)
        raise SystemExit(77)
    unusable(f"{image} holds no kernel packed by zstd, xz, gzip or lz4: give the path of a bzImage")


def section(elf, name):
    """The bytes of a section of a 64-bit little-endian ELF file; none if it has none of that name."""
    (table,), (size, count, names) = struct.unpack_from("<Q", elf, 40), struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + index * size) for index in range(count)]
    strings = headers[names][4]
    for header in headers:
        start = strings + header[0]
        if elf[start : elf.index(0, start)] == name.encode():
            return elf[header[4] : header[4] + header[5]]
    return None


class Types:
    """The types of a kernel."""

    # Bytes that follow a type of this kind, for each of its `vlen` members: docs, "2.2 Type Encoding".
    EACH = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}
    ONCE = {1: 4, 3: 12, 14: 4, 17: 4}

    def __init__(self, data):
        magic, _, _, head, types, length, strings, _ = struct.unpack_from("<HBBIIIII", data)
        if magic != 0xEB9F:
            unusable("the kernel's type information is not BTF")
        self.strings, self.all, self.named = data[head + strings :], [None], {}
        at, end = head + types, head + types + length
        while at < end:
            name, info, size = struct.unpack_from("<III", data, at)
            kind, many = info >> 24 & 31, info & 0xFFFF
            at += 12
            members = []
            if kind in (4, 5):
                for index in range(many):
                    member, of, bits = struct.unpack_from("<III", data, at + 12 * index)
                    members.append((self.name(member), of, (bits & 0xFFFFFF if info >> 31 else bits) // 8))
                if members:
                    self.named.setdefault(self.name(name), len(self.all))
            self.all.append((kind, size, members))
            at += self.ONCE.get(kind, 0) + self.EACH.get(kind, 0) * many

    def name(self, offset):
        return self.strings[offset : self.strings.index(0, offset)].decode()

    def offset(self, structure, path):
        """Where `path` (members joined by dots) lies in `structure`; none if it does not."""
        index, at = self.named.get(structure), 0
        for member in path.split("."):
            found = self.find(index, member)
            if found is None:
                return None
            at, index = at + found[0], found[1]
        return at

    def find(self, index, member):
        while index and self.all[index][0] in (8, 9, 10, 11, 18):  # typedef, volatile, const, restrict
            index = self.all[index][1]
        for name, of, at in self.all[index][2] if index else ():
            if name == member:
                return at, of
            if not name and (inner := self.find(of, member)):
                return at + inner[0], inner[1]
        return None

    def size(self, structure):
        return self.all[self.named[structure]][1]
