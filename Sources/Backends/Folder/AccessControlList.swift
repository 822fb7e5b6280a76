// SPDX-License-Identifier: Apache-2.0

// A POSIX access control list in the kernel's extended attribute format (linux/posix_acl_xattr.h): a version of 32
// bits, and for each entry a tag and permissions of 16 bits and an identifier of 32 bits, all little-endian.

internal import Glibc

/// The access control list of a folder that the service makes for a user: the user and the service may use it.
struct AccessControlList {
    /// The attribute's value.
    let bytes: [UInt8]

    private static let version: UInt32 = 2
    private static let nobody = UInt32.max

    private enum Tag: UInt16 {
        case owner = 1
        case user = 2
        case group = 4
        case mask = 16
        case others = 32
    }

    /// - Parameters:
    ///   - user: the folder's owner.
    ///   - service: the service's user, who needs an entry because files that the owner creates belong to the owner.
    init(user: UInt32, service: UInt32) {
        var entries: [(Tag, UInt16, UInt32)] = [(.owner, 7, Self.nobody)]
        for identifier in Set([user, service]).sorted() { entries.append((.user, 7, identifier)) }
        entries += [(.group, 0, Self.nobody), (.mask, 7, Self.nobody), (.others, 0, Self.nobody)]
        bytes = entries.reduce(into: Self.littleEndian(Self.version)) { bytes, entry in
            bytes += Self.littleEndian(entry.0.rawValue) + Self.littleEndian(entry.1) + Self.littleEndian(entry.2)
        }
    }

    /// Sets the list on a directory, and as the default for everything created in it.
    /// - Returns: whether the filesystem supports access control lists.
    func apply(to directory: borrowing FileDescriptor) -> Bool {
        guard let setAttribute = Self.setAttribute else { return false }
        let number = directory.number
        let names = ["system.posix_acl_access", "system.posix_acl_default"]
        return names.allSatisfy { name in
            bytes.withUnsafeBytes { setAttribute(number, name, $0.baseAddress, $0.count, 0) } == 0
        }
    }

    private static func littleEndian(_ number: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: number.littleEndian) { Array($0) }
    }

    private typealias SetAttribute =
        @convention(c) (Int32, UnsafePointer<CChar>, UnsafeRawPointer?, Int, Int32) -> Int32

    /// fsetxattr(2), looked up by name because Swift's module of the C library leaves out <sys/xattr.h>.
    private static let setAttribute: SetAttribute? = dlsym(nil, "fsetxattr").map {
        unsafeBitCast($0, to: SetAttribute.self)
    }
}
