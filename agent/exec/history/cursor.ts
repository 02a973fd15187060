// Persists how much of a detached process has been reported, in a small file in the process directory.
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

const schema = z.object({
  /** Spool and boot that received the reports. Reports in another spool, or before a power loss, may be lost. */
  epoch: z.string(),
  bootId: z.string(),
  /** command.started has been reported. */
  started: z.boolean(),
  /** Reported bytes of each stream. */
  stdout: z.int().min(0),
  stderr: z.int().min(0),
  /** command.finished is in the spool and synced to disk. */
  finished: z.boolean(),
})
export type HistoryCursor = z.infer<typeof schema>

const FILE = 'history.json'

export type Session = Pick<HistoryCursor, 'epoch' | 'bootId'>

/** Starts over when the file is missing, damaged or of another session: the coordinator ignores duplicate reports. */
export async function readCursor(dir: string, session: Session): Promise<HistoryCursor> {
  const fresh = { ...session, started: false, stdout: 0, stderr: 0, finished: false }
  let text: string
  try {
    text = await readFile(join(dir, FILE), 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return fresh
    throw error
  }
  try {
    const { success, data } = schema.safeParse(JSON.parse(text))
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
  const fd = openSync(join(dir, FILE), O_WRONLY | O_CREAT, 0o600)
  try {
    writeSync(fd, JSON.stringify(cursor).padEnd(FILE_BYTES), 0)
  } finally {
    closeSync(fd)
  }
}
