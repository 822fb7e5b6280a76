// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
package import PropertyListFiles

extension FileFormat: ExpressibleByArgument {}
