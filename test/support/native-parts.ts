// Skips tests of native parts that were not compiled: npm ci compiles none without a C compiler.
import { findNativeProgram } from '../../agent/exec/native-program.ts'
import { loadNativeSpawn } from '../../agent/exec/native-spawn.ts'
import { NATIVE_PARTS } from '../../shared/native-file-names.ts'

/** The value of the option `skip`. */
export const skipWithoutTerminalHost =
  findNativeProgram(NATIVE_PARTS.terminalHost) === undefined && 'the terminal host was not compiled'

/** The value of the option `skip`. */
export const skipWithoutSpawner =
  loadNativeSpawn() === null && 'the posix_spawn addon was not compiled: no C compiler'
