// Where `box logs` starts in each stream: --tail, --bytes and --since.
import type { Offsets } from '../../shared/api/processes.ts'
import {
  type ConnectionOptions,
  getOffsetsSince,
  readOutput,
  type StreamName,
} from '../follow/read-output.ts'
import { type Block, findLastLines } from './last-lines.ts'

export type Selection = {
  /** --tail: lines of each stream. */
  tail?: number
  /** --bytes: bytes of each stream. */
  bytes?: number
  /** --since: milliseconds since the epoch. */
  since?: number
}

/**
 * @param size the current length of both streams in bytes
 * @param onUnknownTimes called when --since has no effect
 */
export async function getStartOffsets(
  connection: ConnectionOptions,
  size: Offsets,
  { tail, bytes, since }: Selection,
  onUnknownTimes: () => void,
): Promise<Offsets> {
  const last = await getStartOfLast(connection, size, { tail, bytes })
  if (since === undefined) return last
  const { offsets, hasTimes } = await getOffsetsSince(connection, since)
  if (!hasTimes) onUnknownTimes()
  return {
    stdout: Math.max(last.stdout, offsets.stdout),
    stderr: Math.max(last.stderr, offsets.stderr),
  }
}

async function getStartOfLast(
  connection: ConnectionOptions,
  size: Offsets,
  { tail, bytes }: { tail: number | undefined; bytes: number | undefined },
): Promise<Offsets> {
  if (tail === undefined) return getLastBytes(size, bytes ?? Number.POSITIVE_INFINITY)
  const find = (stream: StreamName) =>
    findLastLines(tail, size[stream], (from, to) => readBlock(connection, stream, from, to))
  return { stdout: await find('stdout'), stderr: await find('stderr') }
}

const getLastBytes = ({ stdout, stderr }: Offsets, bytes: number): Offsets => ({
  stdout: Math.max(0, stdout - bytes),
  stderr: Math.max(0, stderr - bytes),
})

async function readBlock(
  connection: ConnectionOptions,
  stream: StreamName,
  from: number,
  to: number,
): Promise<Block> {
  const other = { stdout: 0, stderr: 0 }
  const chunks: Buffer[] = []
  let start = to
  await readOutput({
    ...connection,
    query: { streams: stream },
    from: { ...other, [stream]: from },
    until: { ...other, [stream]: to },
    async onChunk({ bytes, offset }) {
      if (chunks.length === 0) start = Math.min(offset, to)
      chunks.push(bytes)
    },
    onMissing: () => undefined,
  })
  return { offset: start, bytes: Buffer.concat(chunks).subarray(0, to - start) }
}
