// SPDX-License-Identifier: Apache-2.0

/// The keys of the objects that stand for what JSON doesn't have. Each is an object's only key.
public enum JSONTag: String, CaseIterable, Sendable {
    /// `{"$date": "2026-11-21T09:30:00.25Z"}`, or seconds since 2001 where the calendar has no exact text for it.
    case date = "$date"
    /// `{"$data": "AAEC"}`, in Base64.
    case data = "$data"
    /// `{"$real": "nan"}`, `inf`, `-inf`, or the 16 hexadecimal digits of a NaN that isn't the usual one.
    case real = "$real"
    /// `{"$dictionary": ["$date", 1]}`: a dictionary whose only key is one of these, keys and values alternating.
    case dictionary = "$dictionary"
}
