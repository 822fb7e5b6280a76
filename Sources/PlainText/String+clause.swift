// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The text for the end of a sentence that has a full stop itself: without its own. Errors of other programs and
    /// libraries are sentences or clauses, as each likes.
    package var clause: String { hasSuffix(".") && !hasSuffix("..") ? String(dropLast()) : self }
}
