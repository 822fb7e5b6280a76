// SPDX-License-Identifier: Apache-2.0

// A POSIX access control list in the kernel's extended attribute format (linux/posix_acl_xattr.h): a version of 32
// bits, and for each entry a tag and permissions of 16 bits and an identifier of 32 bits, all little-endian.

internal import Files
internal import Glibc

/// The access control list of what the service makes for a user in a root: the user and the service may use it.
struct AccessControlList {
    /// The attribute's value.
    let bytes: [UInt8]
    private let isFile: Bool

    private static let version: UInt32 = 2
    private static let nobody = UInt32.max
    private static let access = "system.posix_acl_access"
    /// The list of everything that is created in a directory.
    private static let initial = "system.posix_acl_default"
    /// The size of the longest list that is read, of 128 entries. The service's own have six at most.
    private static let mostBytes = 4 + 128 * 8

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
    ///   - isFile: whether it is the list of a file, which nobody runs, and not of a directory.
    init(user: UInt32, service: UInt32, isFile: Bool = false) {
        self.isFile = isFile
        let all: UInt16 = isFile ? 6 : 7
        var entries: [(Tag, UInt16, UInt32)] = [(.owner, all, Self.nobody)]
        for identifier in Set([user, service]).sorted() { entries.append((.user, all, identifier)) }
        entries += [(.group, 0, Self.nobody), (.mask, all, Self.nobody), (.others, 0, Self.nobody)]
        bytes = entries.reduce(into: Self.littleEndian(Self.version)) { bytes, entry in
            bytes += Self.littleEndian(entry.0.rawValue) + Self.littleEndian(entry.1) + Self.littleEndian(entry.2)
        }
    }

    /// Sets the list on a file, or on a directory and as the default for everything created in it.
    /// - Throws: the reason why it can't be set. Not every filesystem has access control lists.
    func apply(to file: borrowing FileDescriptor) throws(SystemError) {
        guard let setAttribute = Self.setAttribute else { throw SystemError(ENOTSUP) }
        let number = file.number
        for name in isFile ? [Self.access] : [Self.access, Self.initial] {
            let status = bytes.withUnsafeBytes { setAttribute(number, name, $0.baseAddress, $0.count, 0) }
            if status != 0 { throw SystemError() }
        }
    }

    /// Returns the users whom a file's list names besides its owner; none if there is no list.
    static func users(of file: borrowing FileDescriptor) -> Set<UInt32> {
        guard let getAttribute else { return [] }
        let number = file.number
        let bytes = [UInt8](unsafeUninitializedCapacity: mostBytes) { buffer, count in
            count = max(0, getAttribute(number, Self.access, buffer.baseAddress, buffer.count))
        }
        guard bytes.starts(with: littleEndian(version)) else { return [] }
        return bytes.withUnsafeBytes { bytes in
            let entries = stride(from: 4, through: bytes.count - 8, by: 8)
            let users = entries.filter { entry in
                UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: entry, as: UInt16.self)) == Tag.user.rawValue
            }
            let identifiers = users.map { bytes.loadUnaligned(fromByteOffset: $0 + 4, as: UInt32.self) }
            // The kernel names an id that this process can't see like nobody's.
            return Set(identifiers.map { UInt32(littleEndian: $0) }).subtracting([nobody])
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

    private typealias GetAttribute =
        @convention(c) (Int32, UnsafePointer<CChar>, UnsafeMutableRawPointer?, Int) -> Int

    /// fgetxattr(2), likewise.
    private static let getAttribute: GetAttribute? = dlsym(nil, "fgetxattr").map {
        unsafeBitCast($0, to: GetAttribute.self)
    }
}
