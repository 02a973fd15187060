// Reads one page of a command's output (spec §4.4), as whole UTF-8 characters or exact bytes.
import type { CommandOutput, CommandOutputQuery } from '../../../shared/api/commands.ts'
import { LIMITS } from '../../../shared/limits.ts'
import type { Db } from '../../db/open.ts'
import { readOutput } from './output-chunk-store.ts'
import type { CommandRow } from './store.ts'
import { leadingContinuationBytes, utf8PageLength } from './utf8-page.ts'

/** The most bytes of a character that can lie beyond the limit, or before the first retained byte. */
const MAX_CONTINUATION_BYTES = 3

export async function readOutputPage(
  db: Db,
  row: CommandRow,
  query: CommandOutputQuery,
): Promise<CommandOutput> {
  const { stream = 'stdout', offset = 0, limit = LIMITS.commandOutputBytes, encoding = 'utf8' } = query
  const [size, start] = [row[`${stream}_bytes`], row[`${stream}_start`]]
  const finished = row.status !== 'running'
  const createPage = (from: number, bytes: Buffer): CommandOutput => {
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
      done: finished && nextOffset >= size,
    }
  }
  if (offset >= size) return createPage(offset, Buffer.alloc(0))
  const from = Math.max(offset, start)
  const found = await readOutput(db, row.id, stream, from, limit + 2 * MAX_CONTINUATION_BYTES)
  // Since the row was read, output may have been appended (left out here) or discarded (skipped).
  const bytes = found.data.subarray(0, Math.max(0, size - found.offset))
  if (bytes.length === 0) return createPage(size, bytes)
  if (encoding === 'base64') return createPage(found.offset, bytes.subarray(0, limit))
  // Where earlier output was discarded, the first bytes may belong to a character that was discarded in part.
  const followsDiscarded = found.offset > offset || (start > 0 && found.offset === start)
  const orphans = followsDiscarded ? leadingContinuationBytes(bytes) : 0
  const rest = bytes.subarray(orphans)
  const isLast = finished && found.offset + bytes.length >= size
  return createPage(found.offset + orphans, rest.subarray(0, utf8PageLength(rest, limit, isLast)))
}
