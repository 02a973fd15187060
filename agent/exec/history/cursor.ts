// Persists which reports of a detached process the spool has received, in a small file in the process directory.
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

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
export async function readCursor(dir: string, session: SpoolSession): Promise<HistoryCursor> {
  const fresh = { ...session, started: false, stdout: 0, stderr: 0, finished: false }
  let text: string
  try {
    text = await readFile(join(dir, FILE_NAME), 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return fresh
    throw error
  }
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
const { O_WRONLY, O_CREAT } = constants

/** Overwrites in place: truncating first makes some file systems flush the file on close. */
export function writeCursor(dir: string, cursor: HistoryCursor): void {
  const fd = openSync(join(dir, FILE_NAME), O_WRONLY | O_CREAT, 0o600)
  try {
    writeSync(fd, JSON.stringify(cursor).padEnd(FILE_BYTES), 0)
  } finally {
    closeSync(fd)
  }
}
