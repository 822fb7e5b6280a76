// SPDX-License-Identifier: Apache-2.0

internal import ControlCommands

ControlProgram.main()
