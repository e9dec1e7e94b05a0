"""A debugger's end of GDB's remote protocol, as far as QEMU needs it to be stopped at functions.

Protocol: "Debugging with GDB", appendix E. The guest's clock advances by some 0.1 ms at each stop."""

import socket
import struct

RAX, RSI, RDI, RSP, RIP = 0, 4, 5, 7, 16


class Ended(Exception):
    """The guest has ended."""


class Guest:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        self.socket.connect(str(path))
        self.rest = b""
        self.ask("QStartNoAckMode")
        self.socket.sendall(b"+")
        self.breakpoints = set()

    def send(self, text):
        data = text.encode()
        self.socket.sendall(b"$%s#%02x" % (data, sum(data) & 255))

    def receive(self):
        while True:
            start = self.rest.find(b"$")
            end = self.rest.find(b"#", start)
            if start >= 0 and end >= 0 and len(self.rest) >= end + 3:
                data, self.rest = self.rest[start + 1 : end], self.rest[end + 3 :]
                return data.decode()
            more = self.socket.recv(65536)
            if not more:
                raise Ended
            self.rest += more

    def ask(self, text):
        self.send(text)
        answer = self.receive()
        if answer.startswith("E"):
            raise SystemExit(f"the emulator answers {answer} to {text}")
        return answer

    def registers(self):
        return struct.unpack("<17Q", bytes.fromhex(self.ask("g")[: 17 * 16]))

    def read(self, address, size):
        return bytes.fromhex(self.ask(f"m{address:x},{size:x}"))

    def number(self, address, form="<Q"):
        return struct.unpack(form, self.read(address, struct.calcsize(form)))[0]

    def stop_at(self, address):
        if address not in self.breakpoints:
            self.ask(f"Z0,{address:x},1")
            self.breakpoints.add(address)

    def pass_by(self, address):
        self.ask(f"z0,{address:x},1")
        self.breakpoints.discard(address)

    def go_on(self):
        """Lets the guest run to the next of the addresses; its registers there."""
        here = getattr(self, "here", None)
        if here in self.breakpoints:
            self.ask(f"z0,{here:x},1")
            self.ask("s")
            self.ask(f"Z0,{here:x},1")
        if self.ask("c")[0] in "WX":
            raise Ended
        registers = self.registers()
        self.here = registers[RIP]
        return registers
