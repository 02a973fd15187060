// Records that the box stops: the next agent knows why the runs in progress ended.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readStateFile } from '../../state-file.ts'

const MAX_BYTES = 64

const getPath = (dir: string): string => join(dir, 'stopping')

/** @param requestedAt milliseconds since the epoch */
export function writeStopRecord(dir: string, requestedAt: number): void {
  removeStopRecord(dir)
  writeFileSync(getPath(dir), `${requestedAt}\n`, { mode: 0o600, flush: true, flag: 'wx' })
}

export const removeStopRecord = (dir: string): void => rmSync(getPath(dir), { recursive: true, force: true })

/** null when the box did not stop, or only after all runs had ended. */
export function readStopRecord(dir: string): number | null {
  const match = /^(\d+)\n$/.exec(readStateFile(getPath(dir), MAX_BYTES) ?? '')
  return match === null ? null : Number(match[1])
}
