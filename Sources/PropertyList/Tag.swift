// SPDX-License-Identifier: Apache-2.0

/// The first byte of an encoded value. The numbers are fixed: they are in every database and in every remote.
///
/// 0x00 is not a tag, so that a run of zeroes is not a value.
enum Tag: UInt8 {
    case `false` = 0x01
    case `true` = 0x02
    case integer = 0x03
    case real = 0x04
    case date = 0x05
    case string = 0x06
    case data = 0x07
    case array = 0x08
    case dictionary = 0x09
}

extension Value {
    var tag: Tag {
        switch self {
        case .boolean(let value): value ? .true : .false
        case .integer: .integer
        case .real: .real
        case .date: .date
        case .string: .string
        case .data: .data
        case .array: .array
        case .dictionary: .dictionary
        }
    }
}
