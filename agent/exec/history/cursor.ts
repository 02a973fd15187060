// How far the record of a detached process has been told: a small file beside the process, for the next agent.
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

const schema = z.object({
  /** The spool, and the boot of the machine: what went into another spool, or just before a power cut, may be lost. */
  epoch: z.string(),
  bootId: z.string(),
  started: z.boolean(),
  stdout: z.int().min(0),
  stderr: z.int().min(0),
  /** Its end is in the spool, and on the disk. */
  finished: z.boolean(),
})
export type HistoryCursor = z.infer<typeof schema>

const FILE = 'history.json'

export type Session = Pick<HistoryCursor, 'epoch' | 'bootId'>

/** One that is torn, missing or of another session begins anew: the coordinator takes what is told twice once. */
export async function readCursor(folder: string, session: Session): Promise<HistoryCursor> {
  const fresh = { ...session, started: false, stdout: 0, stderr: 0, finished: false }
  let text: string
  try {
    text = await readFile(join(folder, FILE), 'utf8')
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

/** More than a cursor ever is: what is written over another leaves nothing of it. */
const BYTES = 512
const { O_WRONLY, O_CREAT } = constants

/** In its place, and at once: a file that is emptied first makes some file systems write it to the disk when it is closed. */
export function writeCursor(folder: string, cursor: HistoryCursor): void {
  const fd = openSync(join(folder, FILE), O_WRONLY | O_CREAT, 0o600)
  try {
    writeSync(fd, JSON.stringify(cursor).padEnd(BYTES), 0)
  } finally {
    closeSync(fd)
  }
}
