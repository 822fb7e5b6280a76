// SPDX-License-Identifier: Apache-2.0

// What a disk holds after a power cut, made from a journal of what was done to it.
//
// A file's bytes are on the disk once the file was synchronised; of what was written since, any blocks may be there and
// any may not, whatever their order. Names are on the disk once their directory was synchronised, or the file that they
// lead to (as on ext4 and XFS); of what happened to names since, any beginning may be there and the rest is not, since
// those file systems keep a journal of it. That is more than a disk with an honest cache does, and less than one that
// lies about its flushes, against which no program can do anything.

import Foundation
import SeededRandom

struct DiskImage {
    /// How much of what was not synchronised is on the disk.
    enum Loss {
        /// All of it: the program was killed, the machine was not.
        case none
        /// None of it.
        case everything
        /// What chance leaves.
        case some(seed: UInt64)
    }

    private struct File {
        var durable = Data()
        var pending: [DiskJournal.Operation] = []
        var mode: UInt32 = 0o600
    }

    /// A name that leads to a file, or to a directory.
    private enum Node {
        case file(Int)
        case directory(mode: UInt32)
    }

    private struct NameChange {
        let path: String
        let other: String?
        /// What the names are after it; `nil` takes one away.
        let nodes: [(path: String, node: Node?)]
        let file: Int?
        var isDurable = false
    }

    private var files: [File] = []
    private var byInode: [UInt64: Int] = [:]
    private var present: [String: Node] = [:]
    private var changes: [NameChange] = []

    /// The disk after a journal's first operations; everything in it was made by these.
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

    /// A file's bytes, with those of its blocks that `keeps` says of what was not synchronised.
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

    /// What a disk writes whole.
    private static let blockBytes = 512

    /// Writes what the disk has under one directory to another one.
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
