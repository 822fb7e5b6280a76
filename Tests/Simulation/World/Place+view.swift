// SPDX-License-Identifier: Apache-2.0

/// What a storage says of the versions of heads.
enum Tags {
    case none, right
    /// None of what was written within the last seconds.
    case late
    /// Now and then the one before, though the content is another.
    case stuck
    /// Now and then another one, though the content is the same.
    case restless
}

extension Place {
    /// What is stored under a name.
    struct Object {
        /// `nil`: deleted.
        var blob: Blob?
        var former: Blob?
        var version: Int
        /// Whose tag it has, if a storage gives it that of the one before.
        var formerTag: Int?

        var tag: Int { formerTag ?? version }
    }

    /// What somebody sees of a remote, in the order of names.
    struct View {
        var entries: [(name: String, object: Object)] = []
        /// Counts what became of it.
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

        /// What is under names that begin so.
        func below(_ prefix: String) -> ArraySlice<(name: String, object: Object)> {
            // No name has the last scalar in it.
            entries[index(of: prefix)..<index(of: prefix + "\u{10FFFF}")]
        }

        private func isAt(_ index: Int, _ name: String) -> Bool { index < entries.count && entries[index].name == name }

        /// Where a name is, or would be.
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
