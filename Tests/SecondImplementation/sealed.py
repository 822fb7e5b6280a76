#!/usr/bin/python3
"""A second implementation of wrapping 02 of docs/remote-format.md, written from that page without the Swift code.

    sealed.py WORDLIST < REQUESTS

Reads a JSON array of requests and prints an array with an answer for each; bytes are hexadecimal digits. What can't be
read is answered with {"refused": "damaged" | "newer" | "foreign" | "another account" | "plain" | ...}.
"""
# SPDX-License-Identifier: Apache-2.0

import hashlib
import hmac
import json
import re
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

MARKER, HEAD, SEGMENT, NOTE = b"UKVa", b"UKVh", b"UKVx", b"UKVr"
WRAPPED = b"\x01\x02"
LONGEST = {MARKER: 4096, HEAD: 4325502, SEGMENT: 17301574}
WORDS_SUM = "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda"


class Refused(Exception):
    """A blob is refused; the text says why."""


def sha256(data):
    return hashlib.sha256(data).digest()


def mac(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def expand(key, info):
    """HKDF-Expand (RFC 5869) to 32 bytes: one block."""
    return mac(key, info + b"\x01")


class Key:
    def __init__(self, secret, identifier):
        assert len(secret) == len(identifier) == 16
        self.identifier = identifier
        extracted = mac(bytes(32), secret)
        for label in ("salt", "blob", "bucket", "marker", "successor"):
            setattr(self, label, expand(extracted, b"UbiquitousStore 1 " + label.encode() + identifier))

    def hash(self, key):
        return mac(self.bucket, key)[:2]


# The phrase

class Words:
    def __init__(self, path):
        with open(path, "rb") as file:
            text = file.read()
        assert hashlib.sha256(text).hexdigest() == WORDS_SUM, "not the English list"
        self.words = text.decode("ascii").split("\n")[:-1]
        self.places = {word[:4]: place for place, word in enumerate(self.words)}

    def phrase(self, secret):
        bits = int.from_bytes(secret, "big") << 4 | sha256(secret)[0] >> 4
        return " ".join(self.words[bits >> 11 * (11 - place) & 2047] for place in range(12))

    def secret(self, phrase):
        words = [word for word in re.split(r"[\W_]+", phrase) if word and not word.isdigit()]
        if len(words) != 12:
            raise Refused("%d words" % len(words))
        bits = 0
        for place, word in enumerate(words, 1):
            if not (word.isascii() and word.isalpha() and word.lower()[:4] in self.places):
                raise Refused("word %d" % place)
            bits = bits << 11 | self.places[word.lower()[:4]]
        secret = (bits >> 4).to_bytes(16, "big")
        if sha256(secret)[0] >> 4 != bits & 15:
            raise Refused("checksum")
        return secret


# Parts

def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


class Reader:
    def __init__(self, data):
        self.data = data

    def take(self, count):
        if count > len(self.data):
            raise Refused("damaged")
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def varint(self):
        number = 0
        for place in range(10):
            byte = self.take(1)[0]
            number |= (byte & 127) << 7 * place
            if byte < 128:
                if number >> 64 or (byte == 0 and place):
                    raise Refused("damaged")
                return number
        raise Refused("damaged")


def begin(data, kind, limit, summed):
    """Returns a reader after format and wrapping. Checks and removes the digest at the end, if there is one."""
    if len(data) > limit:
        raise Refused("damaged")
    if data[:4] != kind:
        raise Refused("foreign")
    if summed:
        data, total = data[:-32], data[-32:]
        if sha256(data) != total:
            raise Refused("damaged")
    reader = Reader(data)
    reader.take(4)
    number, wrapping = reader.varint(), reader.take(1)
    if number == 1 and wrapping == b"\x00":
        raise Refused("plain")
    if number != 1 or wrapping != b"\x02":
        raise Refused("newer" if number else "older")
    return reader


# Markers, links, notes

def link(key, successor, kind):
    said = key.identifier + successor + bytes([kind])
    return said + mac(key.successor, said)


def is_proven(data, key):
    return data[:16] == key.identifier and hmac.compare_digest(data[33:], mac(key.successor, data[:33]))


def check_link(data, kinds=(1, 2, 4)):
    if data[:16] == data[16:32] or data[32] not in kinds:
        raise Refused("damaged")
    return data


def marker(key, time, links):
    data = MARKER + WRAPPED + key.identifier + varint(time) + b"\x01" + varint(len(links)) + b"".join(links)
    data += mac(key.marker, data)
    return data + sha256(data)


def read_marker(data, key=None):
    reader = begin(data, MARKER, LONGEST[MARKER], True)
    identifier, time = reader.take(16), reader.varint()
    if reader.take(1) != b"\x01":
        raise Refused("newer")
    count = reader.varint()
    if count > 56:
        raise Refused("damaged")
    links = [check_link(reader.take(65)) for _ in range(count)]
    check = reader.take(32)
    if reader.data:
        raise Refused("damaged")
    genuine = None
    if key and key.identifier == identifier:
        genuine = hmac.compare_digest(check, mac(key.marker, data[:-64]))
        if not genuine:
            raise Refused("damaged")
    return {"identifier": identifier.hex(), "time": time, "links": [each.hex() for each in links], "genuine": genuine}


def note(data):
    data = NOTE + WRAPPED + data
    return data + sha256(data)


def note_name(data):
    return "a/" + data[:33].hex()


def read_note(data, name):
    reader = begin(data, NOTE, 103, True)
    said = check_link(reader.take(65), (1, 2, 3))
    if reader.data or note_name(said) != name:
        raise Refused("damaged")
    return said


# Heads and segments

def padded(count):
    if count > 1:
        log = count.bit_length() - 1
        zeros = log - (log.bit_length() - 1) - 1
        if zeros > 0:
            count = (count + (1 << zeros) - 1) >> zeros << zeros
    return (count + 255) // 256 * 256


def seal(key, header, random, content, more):
    inner = random + varint(len(content)) + content
    inner += bytes(padded(len(inner)) - len(inner) + more)
    salt = mac(key.salt, header + inner)
    before = header + salt
    box = ChaCha20Poly1305(expand(key.blob, before)).encrypt(bytes(12), inner, before)
    return before + box, salt


def seal_head(key, origin, sequence, random, content, former=None):
    header = HEAD + WRAPPED + key.identifier + origin
    data, _ = seal(key, header, random, content, sequence % 16)
    if len(data) + 32 == former:
        data, _ = seal(key, header, random, content, 16)
    return data + sha256(data)


def seal_segment(key, content):
    data, salt = seal(key, SEGMENT + WRAPPED + key.identifier, b"", content, 0)
    return data, salt[:16]


def open_blob(key, kind, data):
    """Returns the content, a head's origin, and a segment's name."""
    head = kind == HEAD
    reader = begin(data, kind, LONGEST[kind], head)
    if reader.take(16) != key.identifier:
        raise Refused("another account")
    origin = reader.take(8) if head else b""
    salt = reader.take(32)
    header = kind + WRAPPED + key.identifier + origin
    try:
        inner = ChaCha20Poly1305(expand(key.blob, header + salt)).decrypt(bytes(12), reader.data, header + salt)
    except InvalidTag:
        raise Refused("damaged") from None
    if not hmac.compare_digest(salt, mac(key.salt, header + inner)):
        raise Refused("damaged")
    reader = Reader(inner)
    if head:
        reader.take(16)
    content = reader.take(reader.varint())
    if any(reader.data):
        raise Refused("damaged")
    return content, origin, b"" if head else salt[:16]


# Requests

def answer(words, request):
    def octets(name):
        return bytes.fromhex(request.get(name, ""))

    key = Key(octets("secret"), octets("identifier")) if "identifier" in request else None
    what = request["do"]
    if what == "keys":
        labels = ("salt", "blob", "bucket", "marker", "successor")
        return {label: getattr(key, label).hex() for label in labels}
    if what == "phrase":
        return {"phrase": words.phrase(octets("secret"))}
    if what == "secret":
        return {"secret": words.secret(request["phrase"]).hex()}
    if what == "hash":
        return {"hash": key.hash(octets("key")).hex()}
    if what == "link":
        return {"link": link(key, octets("successor"), request["kind"]).hex()}
    if what == "proven":
        return {"proven": is_proven(octets("link"), key)}
    if what == "marker":
        return {"bytes": marker(key, request["time"], [bytes.fromhex(each) for each in request["links"]]).hex()}
    if what == "read marker":
        return read_marker(octets("bytes"), key)
    if what == "note":
        return {"bytes": note(octets("link")).hex(), "name": note_name(octets("link"))}
    if what == "read note":
        return {"link": read_note(octets("bytes"), request["name"]).hex()}
    if what == "seal head":
        former = request.get("former")
        data = seal_head(key, octets("origin"), request["sequence"], octets("random"), octets("content"), former)
        return {"bytes": data.hex()}
    if what == "seal segment":
        data, name = seal_segment(key, octets("content"))
        return {"bytes": data.hex(), "name": name.hex()}
    if what in ("open head", "open segment"):
        content, origin, name = open_blob(key, HEAD if what == "open head" else SEGMENT, octets("bytes"))
        return {"content": content.hex(), "origin": origin.hex(), "name": name.hex()}
    raise ValueError(what)


def main():
    words = Words(sys.argv[1])
    answers = []
    for request in json.load(sys.stdin):
        try:
            answers.append(answer(words, request))
        except Refused as refused:
            answers.append({"refused": str(refused)})
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
