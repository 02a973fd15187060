// Where `box logs` starts in each stream: --tail and --bytes.
import type { Offsets } from '../../shared/api/processes.ts'
import type { StreamName } from '../follow/events.ts'
import { type ConnectionOptions, readOutput } from '../follow/read-output.ts'
import { type Block, findLastLines } from './last-lines.ts'

export type Selection = {
  /** --tail: lines of each stream. */
  tail?: number
  /** --bytes: bytes of each stream. */
  bytes?: number
}

/** @param size the current length of both streams in bytes */
export async function getStartOffsets(
  connection: ConnectionOptions,
  size: Offsets,
  { tail, bytes }: Selection,
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
    streams: stream,
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
