// Persists which reports of a detached process the spool has received, in a small file in the process directory.
import { closeSync, ftruncateSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { openStateFile, readStateFile } from '../../state-file.ts'

const cursorSchema = z.object({
  /** The spool that received the reports. When the box has a new spool, the reports of the old spool may be lost. */
  epoch: z.string(),
  /** The boot during which the spool received the reports. Reports that were not synced are lost in a power failure. */
  bootId: z.string(),
  /** Whether command.started has been reported. */
  started: z.boolean(),
  /** Offset of the first byte of each stream that has not been reported. */
  stdout: z.int().min(0),
  stderr: z.int().min(0),
  /** Whether command.finished is in the spool and synced to disk. */
  finished: z.boolean(),
})
export type HistoryCursor = z.infer<typeof cursorSchema>

const FILE_NAME = 'history.json'

/** A spool during one boot of the box. */
export type SpoolSession = Pick<HistoryCursor, 'epoch' | 'bootId'>

/**
 * Returns a cursor at the start when the file is missing, damaged or of another session. The reports are then repeated;
 * the coordinator ignores duplicates.
 */
export function readCursor(dir: string, session: SpoolSession): HistoryCursor {
  const fresh = { ...session, started: false, stdout: 0, stderr: 0, finished: false }
  const text = readStateFile(join(dir, FILE_NAME), FILE_BYTES)
  if (text === null) return fresh
  try {
    const { success, data } = cursorSchema.safeParse(JSON.parse(text))
    if (!success || data.epoch !== session.epoch) return fresh
    return data.finished || data.bootId === session.bootId ? data : fresh
  } catch {
    return fresh
  }
}

/** Longer than any cursor, so that a write in place overwrites the previous one completely. */
const FILE_BYTES = 512

/** Overwrites in place: truncating first makes some file systems flush the file on close. */
export function writeCursor(dir: string, cursor: HistoryCursor): void {
  const fd = openStateFile(join(dir, FILE_NAME))
  try {
    writeSync(fd, JSON.stringify(cursor).padEnd(FILE_BYTES), 0)
    ftruncateSync(fd, FILE_BYTES)
  } finally {
    closeSync(fd)
  }
}
