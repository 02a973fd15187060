// Names of the files compiled from agent/exec/native: the spawn addon, the runner and the program that confines a box.
import { createHash } from 'node:crypto'

const hashSource = (source: Uint8Array): string =>
  createHash('sha256').update(source).digest('hex').slice(0, 16)

/** The native addon that starts processes. The hash of the source prevents loading an addon of another version. */
export const getSpawnAddonFileName = (source: Uint8Array): string => `spawn-${hashSource(source)}.node`

/** The runner: the parent process of a detached command. */
export const getRunnerFileName = (source: Uint8Array): string => `run-${hashSource(source)}`

/** The program that executes the init of a local box. */
export const getConfineFileName = (source: Uint8Array): string => `confine-${hashSource(source)}`

/** File names beside the agent bundle on a box. They need no hash: all files are copied together. */
export const BUNDLED_SPAWN_ADDON_FILE_NAME = 'spawn.node'
export const BUNDLED_RUNNER_FILE_NAME = 'run'
export const BUNDLED_CONFINE_FILE_NAME = 'confine'
