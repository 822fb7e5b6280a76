// SPDX-License-Identifier: Apache-2.0

public import ArgumentParser
public import PropertyListFiles

extension FileFormat: ExpressibleByArgument {}
