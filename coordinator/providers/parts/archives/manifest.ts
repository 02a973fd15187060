// The manifest of an archive. The worker threads do not read it: zod would take half of the time of their start.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { DamagedArchiveError, MANIFEST_FILE } from './store-files.ts'

const manifest = z.object({
  version: z.literal(1),
  contentBytes: z.int().nonnegative(),
  storedBytes: z.int().nonnegative(),
  pausedMs: z.int().nonnegative().nullable(),
  /** The length of the tar stream. */
  streamBytes: z.int().nonnegative(),
  /** SHA-256 of the list of chunks. The list has the SHA-256 of each chunk, so this digest covers the whole stream. */
  digest: z.string().regex(/^[0-9a-f]{64}$/),
})
export type Manifest = z.infer<typeof manifest>

/** Throws DamagedArchiveError when the archive is missing or its manifest is damaged. */
export function readManifest(dir: string): Manifest {
  try {
    return manifest.parse(JSON.parse(readFileSync(join(dir, MANIFEST_FILE), 'utf8')))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new DamagedArchiveError('it is missing')
    if (error instanceof SyntaxError || error instanceof z.ZodError)
      throw new DamagedArchiveError('its manifest is damaged')
    throw error
  }
}
