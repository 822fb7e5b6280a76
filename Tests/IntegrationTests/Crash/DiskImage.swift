// SPDX-License-Identifier: Apache-2.0

// What a disk holds after a power cut, computed from a journal of the operations on it.
//
// A file's bytes are on the disk once the file was synced; of later writes, any blocks may be there and any may not, in
// any order. Names are on the disk once their directory was synced, or the file that they lead to (as on ext4 and XFS).
// Of later changes of names, the first ones may be there and the rest not, because those file systems keep a journal of
// them. That is more than a disk with an honest cache loses, and less than one that lies about its flushes, against
// which no program can do anything.

import Foundation
import SeededRandom

struct DiskImage {
    /// How much of what was not synced is lost.
    enum Loss {
        /// Nothing: the program was killed, not the machine.
        case none
        /// All of it.
        case everything
        /// A random part of it.
        case some(seed: UInt64)
    }

    private struct File {
        var durable = Data()
        var pending: [DiskJournal.Operation] = []
        var mode: UInt32 = 0o600
    }

    /// What a name leads to.
    private enum Node {
        case file(Int)
        case directory(mode: UInt32)
    }

    private struct NameChange {
        let path: String
        let other: String?
        /// What the names lead to after the change; `nil` if a name is gone.
        let nodes: [(path: String, node: Node?)]
        let file: Int?
        var isDurable = false
    }

    private var files: [File] = []
    private var byInode: [UInt64: Int] = [:]
    private var present: [String: Node] = [:]
    private var changes: [NameChange] = []

    /// Makes the disk after a journal's first operations, which made everything on it.
    init(_ journal: DiskJournal, count: Int) {
        for record in journal.records.prefix(count) { apply(record) }
    }

    private mutating func apply(_ record: DiskJournal.Record) {
        switch record.operation {
        case .write, .truncate:
            if let file = byInode[record.inode] { files[file].pending.append(record.operation) }
        case .sync(let path):
            sync(record.inode, path)
        case .create(let path, let mode):
            files.append(File(mode: mode & 0o777))
            byInode[record.inode] = files.count - 1
            change(path, to: .file(files.count - 1))
        case .makeDirectory(let path, let mode):
            change(path, to: .directory(mode: mode & 0o777))
        case .rename(let path, let target):
            guard let node = present[path] else { return }
            change([(path, nil), (target, node)])
        case .link(let path, let target):
            if let node = present[path] { change(target, to: node) }
        case .unlink(let path), .removeDirectory(let path):
            change(path, to: nil)
        }
    }

    private mutating func change(_ path: String, to node: Node?) { change([(path, node)]) }

    private mutating func change(_ nodes: [(path: String, node: Node?)]) {
        var file: Int?
        for (path, node) in nodes {
            present[path] = node
            if case .file(let index) = node { file = index }
        }
        changes.append(
            NameChange(path: nodes[0].path, other: nodes.dropFirst().first?.path, nodes: nodes, file: file))
    }

    private mutating func sync(_ inode: UInt64, _ path: String) {
        let file = byInode[inode].flatMap { index in
            if case .file(index) = present[path] ?? .directory(mode: 0) { index } else { nil }
        }
        if let file {
            files[file].durable = content(of: files[file]) { _ in true }
            files[file].pending = []
        }
        for index in changes.indices where !changes[index].isDurable {
            let isOfDirectory = [changes[index].path, changes[index].other].contains { $0.map(directory) == path }
            if isOfDirectory || (file != nil && changes[index].file == file) { changes[index].isDurable = true }
        }
    }

    private func directory(of path: String) -> String { String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)]) }

    /// Returns a file's bytes: what was synced, and of the rest the blocks for which `keeps` is true.
    private func content(of file: File, keeps: (Int) -> Bool) -> Data {
        var data = file.durable
        for operation in file.pending {
            switch operation {
            case .truncate(let length):
                guard keeps(0) else { continue }
                if length < data.count { data.removeSubrange(length...) } else { data.grow(to: length) }
            case .write(let offset, let bytes):
                for start in stride(from: 0, to: bytes.count, by: Self.blockBytes) where keeps(start) {
                    let block = bytes.dropFirst(start).prefix(Self.blockBytes)
                    data.grow(to: offset + start + block.count)
                    data.replaceSubrange((offset + start)..<(offset + start + block.count), with: block)
                }
            default: break
            }
        }
        return data
    }

    /// The size of what a disk writes atomically.
    private static let blockBytes = 512

    /// Writes the disk's files below one directory to another one.
    func write(_ root: String, to target: String, loss: Loss) throws {
        var random = SeededGenerator(loss)
        let names = names(loss, &random).filter { $0.key == root || $0.key.hasPrefix(root + "/") }
        for (path, node) in names.sorted(by: { $0.key < $1.key }) {
            let place = target + path.dropFirst(root.count)
            switch node {
            case .directory(let mode):
                try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
                chmod(place, mode)
            case .file(let index):
                let data = content(of: files[index]) { _ in random.keeps(loss) }
                guard FileManager.default.createFile(atPath: place, contents: data) else { continue }
                chmod(place, files[index].mode)
            }
        }
    }

    private func names(_ loss: Loss, _ random: inout SeededGenerator) -> [String: Node] {
        let kept: Int
        switch loss {
        case .none: kept = changes.count
        case .everything: kept = 0
        case .some: kept = Int(random.next() % UInt64(changes.count + 1))
        }
        var names: [String: Node] = [:]
        for (index, change) in changes.enumerated() where change.isDurable || index < kept {
            for (path, node) in change.nodes { names[path] = node }
        }
        return names
    }
}

extension Data {
    fileprivate mutating func grow(to length: Int) {
        if count < length { append(Data(count: length - count)) }
    }
}

/// Decides what a power cut leaves.
private struct SeededGenerator: RandomNumberGenerator {
    private var generator = SplitMix(seed: 0)

    init(_ loss: DiskImage.Loss) {
        if case .some(let seed) = loss { generator = SplitMix(seed: seed) }
    }

    mutating func next() -> UInt64 { generator.next() }

    mutating func keeps(_ loss: DiskImage.Loss) -> Bool {
        switch loss {
        case .none: true
        case .everything: false
        case .some: next() & 1 == 0
        }
    }
}
