// SPDX-License-Identifier: Apache-2.0

internal import PropertyList

extension Value {
    /// The name of the value's type, as in the options of `set`.
    var typeName: String {
        switch self {
        case .boolean: "bool"
        case .integer: "int"
        case .real: "float"
        case .string: "string"
        case .data: "data"
        case .date: "date"
        case .array: "array"
        case .dictionary: "dict"
        }
    }
}
