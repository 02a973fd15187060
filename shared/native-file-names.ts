// File names of the compiled parts of agent/exec/native, shared by the code that builds, ships and loads them.
import { createHash } from 'node:crypto'

const hashOf = (source: Uint8Array): string => createHash('sha256').update(source).digest('hex').slice(0, 16)

/** Contains a hash of the source, so that an addon built from another version is never loaded. */
export const getSpawnAddonFileName = (source: Uint8Array): string => `spawn-${hashOf(source)}.node`

/** The executable that runs detached processes. */
export const getRunnerFileName = (source: Uint8Array): string => `run-${hashOf(source)}`

/** Names next to the agent bundle on a box, which always contains matching builds. */
export const BUNDLED_SPAWN_ADDON = 'spawn.node'
export const BUNDLED_RUNNER = 'run'
