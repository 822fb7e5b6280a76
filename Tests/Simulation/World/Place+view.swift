// SPDX-License-Identifier: Apache-2.0

/// How a storage reports the versions of heads.
enum Tags {
    case none, right
    /// No version for what was written within the last two seconds.
    case late
    /// Now and then the previous version, though the content has changed.
    case stuck
    /// Now and then another version, though the content has not changed.
    case restless
}

extension Place {
    /// The object under a name.
    struct Object {
        /// `nil` if it was deleted.
        var blob: Blob?
        var former: Blob?
        var version: Int
        /// The previous object's tag, if the storage still reports that one.
        var formerTag: Int?

        var tag: Int { formerTag ?? version }
    }

    /// What a device sees of a remote, sorted by name.
    struct View {
        var entries: [(name: String, object: Object)] = []
        /// Counts the changes.
        var revision = 0

        subscript(name: String) -> Object? {
            get {
                let index = index(of: name)
                return isAt(index, name) ? entries[index].object : nil
            }
            set {
                let index = index(of: name)
                switch (isAt(index, name), newValue) {
                case (true, let object?): entries[index].object = object
                case (true, nil): entries.remove(at: index)
                case (false, let object?): entries.insert((name, object), at: index)
                case (false, nil): break
                }
            }
        }

        /// The objects whose names have this prefix.
        func below(_ prefix: String) -> ArraySlice<(name: String, object: Object)> {
            // No name contains the last scalar.
            entries[index(of: prefix)..<index(of: prefix + "\u{10FFFF}")]
        }

        private func isAt(_ index: Int, _ name: String) -> Bool { index < entries.count && entries[index].name == name }

        /// The index of a name, or the index at which to insert it.
        private func index(of name: String) -> Int {
            var (low, high) = (0, entries.count)
            while low < high {
                let middle = (low + high) / 2
                if entries[middle].name < name { low = middle + 1 } else { high = middle }
            }
            return low
        }
    }
}
