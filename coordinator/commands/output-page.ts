// A page of a command's output (spec §4.4): from an offset on, whole characters or exact bytes.
import type { CommandOutput, CommandOutputQuery } from '../../shared/api/commands.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Db } from '../db/open.ts'
import { readOutput } from './output-chunks.ts'
import type { CommandRow } from './store.ts'
import { orphanedBytes, pageLength } from './utf8-page.ts'

/** The longest rest of a character behind the limit, or before what is kept. */
const AROUND = 3

export async function outputPage(db: Db, row: CommandRow, query: CommandOutputQuery): Promise<CommandOutput> {
  const { stream = 'stdout', offset = 0, limit = LIMITS.commandOutputBytes, encoding = 'utf8' } = query
  const [size, start] = [row[`${stream}_bytes`], row[`${stream}_start`]]
  const ended = row.status !== 'running'
  const page = (from: number, bytes: Buffer): CommandOutput => {
    const nextOffset = from + bytes.length
    return {
      stream,
      encoding,
      offset: from,
      nextOffset,
      size,
      skipped: from - offset,
      data: bytes.toString(encoding),
      status: row.status,
      done: ended && nextOffset >= size,
    }
  }
  if (offset >= size) return page(offset, Buffer.alloc(0))
  const from = Math.max(offset, start)
  const found = await readOutput(db, row.id, stream, from, limit + 2 * AROUND)
  // More may have come since the row was read; and what is gone meanwhile is skipped.
  const bytes = found.data.subarray(0, Math.max(0, size - found.offset))
  if (bytes.length === 0) return page(size, bytes)
  if (encoding === 'base64') return page(found.offset, bytes.subarray(0, limit))
  // Where the head is given up, the first bytes may be the end of a character that went with it.
  const orphans = found.offset > offset || (start > 0 && found.offset === start) ? orphanedBytes(bytes) : 0
  const rest = bytes.subarray(orphans)
  const isLast = ended && found.offset + bytes.length >= size
  return page(found.offset + orphans, rest.subarray(0, pageLength(rest, limit, isLast)))
}
