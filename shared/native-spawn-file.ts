// What the compiled parts of agent/exec/native are called. Whoever builds, ships or loads them asks here.
import { createHash } from 'node:crypto'

const hashOf = (source: Uint8Array): string => createHash('sha256').update(source).digest('hex').slice(0, 16)

/** The content is in the name, so that an addon built from another version is never loaded: its calls may differ. */
export const nativeSpawnFile = (source: Uint8Array): string => `spawn-${hashOf(source)}.node`

/** The runner of detached processes, a program. */
export const nativeRunFile = (source: Uint8Array): string => `run-${hashOf(source)}`

/** Their names beside the bundle on a box: what was built belongs to it. */
export const BUNDLED_NATIVE_SPAWN = 'spawn.node'
export const BUNDLED_NATIVE_RUN = 'run'
