// The end of what a command has printed, without the output before it.
import type { OutputStream } from '../../client/boxes/output.ts'
import type { Command } from '../../shared/api/commands.ts'
import type { Client } from '../api/client.ts'

/** Of each stream. */
const BYTES = 1_500

export type OutputEnd = { stream: OutputStream; text: string; isWhole: boolean }

/** The streams that are not empty. A character at the start may be cut. */
export function loadOutputEnds(
  client: Pick<Client, 'loadCommandOutput'>,
  boxId: string,
  { id, stdoutBytes, stderrBytes }: Pick<Command, 'id' | 'stdoutBytes' | 'stderrBytes'>,
): Promise<OutputEnd[]> {
  const sizes = { stdout: stdoutBytes, stderr: stderrBytes }
  const streams = (['stdout', 'stderr'] as const).filter((stream) => sizes[stream] > 0)
  return Promise.all(
    streams.map(async (stream) => {
      const offset = Math.max(0, sizes[stream] - BYTES)
      const { data } = await client.loadCommandOutput(boxId, id, { stream, offset })
      return { stream, text: data.trimEnd(), isWhole: offset === 0 }
    }),
  )
}
