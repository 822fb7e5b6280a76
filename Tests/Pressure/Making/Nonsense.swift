// SPDX-License-Identifier: Apache-2.0

// Messages that no client should send. Most are nearly right, because what is wholly wrong is refused early: a call of
// the interface with contents that fit, and up to two faults.

internal import SeededRandom
internal import StoreBus
internal import UbiquitousStoreTesting

/// Makes malformed messages from a seed.
struct Nonsense {
    var random: SplitMix
    /// How many more values the present message may have.
    var budget = 0

    /// The URL of a folder in which users can sign in.
    let address: String
    /// Strings that fit the present message.
    var fitting: [String] = []

    init(seed: UInt64, address: String) {
        random = SplitMix(seed: seed)
        self.address = address
    }

    mutating func number(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }
    mutating func any<Element>(_ list: [Element]) -> Element { list[number(list.count)] }
    mutating func oneIn(_ count: Int) -> Bool { number(count) == 0 }

    /// The next message. The bus takes it, because it is valid as far as the bus checks.
    mutating func message() -> WireMessage {
        let member = any(Member.all)
        var message = WireMessage()
        message.destination = BusNames.service
        message.path = path(fitting: member.interface)
        message.interface = member.interface
        message.member = member.name
        message.signature = member.signature
        for _ in 0..<any([0, 0, 0, 1, 1, 2]) { spoil(&message) }
        fitting = words(for: member)
        message.body = contents(of: message.signature)
        return message
    }

    private mutating func words(for member: Member) -> [String] {
        switch member.interface {
        case BusNames.storeInterface: (0..<40).map { "key \($0)" }
        case BusNames.managerInterface: Self.declared
        // The URL is rare, because the uploads after signing in would take most of the time.
        case BusNames.accountInterface: oneIn(30) ? [address] : ["local", "remote"] + Self.declared
        default: Member.all.map(\.interface) + Self.properties
        }
    }

    private mutating func spoil(_ message: inout WireMessage) {
        switch number(9) {
        case 0: message.path = anyPath()
        case 1: message.interface = oneIn(3) ? nil : any(Member.all).interface
        case 2: message.member = oneIn(3) ? anyName() : any(Member.all).name
        case 3: message.interface = "\(anyName()).\(anyName())"
        case 4: message.signature = anySignature()
        case 5: message.signature += anySignature()
        case 6: message.signature = WireType.parse(message.signature).dropLast().map(\.signature).joined()
        case 7: message.flags = UInt8(number(256))
        default: changeType(&message)
        }
    }

    /// Makes the message a reply or an error to no call, or a signal.
    private mutating func changeType(_ message: inout WireMessage) {
        message.type = UInt8(2 + number(3))
        if message.type == 4 {
            message.interface = message.interface ?? "org.example.Signal"
            return
        }
        message.replySerial = oneIn(2) ? UInt32(1 + number(100)) : .max
        if message.type == 3 { message.errorName = "org.example.Error.\(anyName())" }
    }

    private mutating func anySignature() -> String {
        (0..<number(4)).map { _ in WireType.any(depth: 3, &random).signature }.joined()
    }

    /// Bytes that are no message, or only part of one. The bus may disconnect their sender.
    mutating func broken(serial: UInt32) -> [UInt8] {
        var bytes = message().bytes(serial: serial)
        if bytes.count > 1 << 16 { bytes = Array(bytes[..<(1 << 16)]) }
        switch number(4) {
        case 0: bytes = Array(bytes[..<number(bytes.count)])
        case 1: for _ in 0...number(4) { bytes[number(bytes.count)] = UInt8(number(256)) }
        case 2: for index in 4..<min(bytes.count, 8) { bytes[index] = UInt8(number(256)) }
        default: bytes += (0..<number(300)).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        }
        return bytes
    }
}
