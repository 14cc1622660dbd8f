# SPDX-License-Identifier: MIT
"""Writes a large C file that no two functions of which are alike. The same one each time."""

import random
import sys

WORDS = ("account address buffer cache channel client column context counter cursor device digest "
         "entry event field filter format frame group handle header index input item iterator "
         "journal key label layer length level limit link list lock manager map mask message "
         "method mode module name node object offset option order output owner packet page parent "
         "parser path pattern peer policy pool port prefix process queue range record region "
         "request result route row rule sample schema scope segment server session slot source "
         "stack state status stream string symbol table target task thread timer token total trace "
         "tree type unit update user value vector version view volume window worker").split()
TYPES = ("int", "unsigned int", "long", "unsigned long", "short", "char", "double", "const char *")


def main():
    functions = int(sys.argv[1])
    rng = random.Random(20240501)
    out = sys.stdout
    structs = []

    def word():
        return rng.choice(WORDS)

    def expression(names, depth=0):
        kind = rng.random()
        if depth > 2 or kind < 0.35:
            return rng.choice(names)
        if kind < 0.55:
            return str(rng.choice((0, 1, 2, 4, 8, 16, 255, 4096, rng.randrange(100000))))
        operator = rng.choice("+ - * & | ^ << >>".split())
        right = expression(names, depth + 1) if operator not in ("<<", ">>") \
            else str(rng.randrange(1, 16))
        return f"({expression(names, depth + 1)} {operator} {right})"

    out.write("extern int report(const char *, ...);\n")
    for n in range(functions // 10):
        name = f"{word()}_{word()}_{n}"
        members = sorted({f"{word()}_{word()}" for _ in range(rng.randrange(3, 12))})
        structs.append((name, members))
        out.write(f"struct {name} {{\n")
        for member in members:
            out.write(f"\t{rng.choice(TYPES[:6])} {member};\n")
        out.write(f"\tstruct {name} *next;\n}};\n")

    for n in range(functions):
        struct, members = rng.choice(structs)
        first, second = f"{word()}_a", f"{word()}_b"
        fields = [f"self->{member}" for member in members]
        names = fields + [first, second, "i"]
        out.write(f"\nlong {word()}_{word()}_{n}(struct {struct} *self, long {first}, "
                  f"long {second})\n{{\n\tlong i, sum = 0;\n")
        for _ in range(rng.randrange(2, 7)):
            kind = rng.randrange(5)
            if kind == 0:
                out.write(f"\tfor (i = 0; i < {rng.randrange(3, 300)}; i++)\n"
                          f"\t\tsum += {expression(names)};\n")
            elif kind == 1:
                out.write(f"\tif ({expression(names)} > {expression(names)})\n"
                          f"\t\t{rng.choice(fields)} = {expression(names[:-1])};\n"
                          f"\telse\n\t\tsum -= {expression(names[:-1])};\n")
            elif kind == 2:
                out.write(f"\tswitch ({rng.choice(fields)} & 7) {{\n")
                for case in range(rng.randrange(2, 7)):
                    out.write(f"\tcase {case}:\n\t\tsum ^= {expression(names[:-1])};\n\t\tbreak;\n")
                out.write("\tdefault:\n\t\treturn sum;\n\t}\n")
            elif kind == 3:
                out.write(f"\treport(\"%s: {word()} {word()} of {word()} {n}: %ld\\n\", "
                          f"__func__, {expression(names[:-1])});\n")
            else:
                out.write("\twhile (self && self->next) {\n"
                          f"\t\tsum += {expression(names[:-1])};\n\t\tself = self->next;\n\t}}\n")
        out.write("\treturn sum;\n}\n")


main()
