// SPDX-License-Identifier: Apache-2.0

/// The keys of objects that represent types JSON lacks. Each is its object's only key.
package enum JSONTag: String, CaseIterable, Sendable {
    /// `{"$date": "2026-11-21T09:30:00.25Z"}`, or seconds since 2001 if no text is exact.
    case date = "$date"
    /// `{"$data": "AAEC"}`, in Base64.
    case data = "$data"
    /// `{"$real": "nan"}`, `inf`, `-inf`, or the 16 hexadecimal digits of a nonstandard NaN.
    case real = "$real"
    /// `{"$dictionary": ["$date", 1]}`: a dictionary whose only key is one of these, keys and values alternating.
    case dictionary = "$dictionary"
}
