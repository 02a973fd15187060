// What the compiled agent/exec/native/spawn.c is called. Whoever builds, ships or loads it asks here.
import { createHash } from 'node:crypto'

/** The content is in the name, so that an addon built from another version is never loaded: its calls may differ. */
export const nativeSpawnFile = (source: Uint8Array): string =>
  `spawn-${createHash('sha256').update(source).digest('hex').slice(0, 16)}.node`

/** Its name beside the bundle on a box: what was built belongs to it. */
export const BUNDLED_NATIVE_SPAWN = 'spawn.node'
