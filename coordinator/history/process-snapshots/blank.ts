// Removes the command lines from the stored process snapshots of a box (zero data retention).
import { lockBox } from '../../db/lock-box.ts'
import type { Db } from '../../db/open.ts'
import { transaction } from '../../db/transaction.ts'
import { blankCommands, decodeChunk, encodeChunkInThreadPool } from './chunk.ts'
import { findNextChunk, replaceChunk } from './store.ts'

const COMPRESSION_LEVEL = 6

/**
 * The result of an interrupted call is that some chunks are blank already: the next call continues.
 * @param signal aborts between two chunks
 */
export async function blankProcessSnapshots(db: Db, boxId: string, signal: AbortSignal): Promise<void> {
  for (let after = -1; !signal.aborted; ) {
    const stored = await findNextChunk(db, boxId, after)
    if (stored === undefined) return
    const blank = await blankChunk(stored)
    // Reports may have extended the chunk meanwhile: it is then read again.
    const isDone = blank === undefined || (await replace(db, boxId, stored, blank))
    if (isDone) after = stored.start
  }
}

type Stored = { start: number; data: Uint8Array }

/** Returns undefined when the chunk has no command lines; null for a damaged chunk, whose content is unknown. */
async function blankChunk({ start, data }: Stored): Promise<Buffer | null | undefined> {
  try {
    const blank = blankCommands(decodeChunk(start * 1000, data))
    return blank && (await encodeChunkInThreadPool(blank, COMPRESSION_LEVEL))
  } catch {
    return null
  }
}

/** The lock of the box keeps out the ingest, which reads a chunk before it writes it. */
const replace = (db: Db, boxId: string, stored: Stored, data: Buffer | null): Promise<boolean> =>
  transaction(db, async (trx) => {
    await lockBox(trx, boxId)
    return replaceChunk(trx, boxId, stored, data)
  })
