// Records that the box stops: the next agent knows why the runs in progress ended.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const getPath = (dir: string): string => join(dir, 'stopping')

/** @param requestedAt milliseconds since the epoch */
export const writeStopRecord = (dir: string, requestedAt: number): void =>
  writeFileSync(getPath(dir), `${requestedAt}\n`, { mode: 0o600, flush: true })

export const removeStopRecord = (dir: string): void => rmSync(getPath(dir), { force: true })

/** null when the box did not stop, or only after all runs had ended. */
export function readStopRecord(dir: string): number | null {
  try {
    const match = /^(\d+)\n$/.exec(readFileSync(getPath(dir), 'utf8'))
    return match === null ? null : Number(match[1])
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}
