// The answer about a command and its output.
import { z } from 'zod'
import type { Box } from '../../client/boxes/box.ts'
import { DATA_NOTE, labelData } from '../text/box-data.ts'
import type { Answer } from '../tool.ts'
import type { Output } from './read-process.ts'

const offsets = z.object({ stdout: z.number(), stderr: z.number() })

export const outputSchema = z.object({
  box: z.string(),
  processId: z.string(),
  status: z.enum(['running', 'exited', 'killed', 'lost']),
  exitCode: z.number().nullable(),
  signal: z.string().nullable(),
  timedOut: z.boolean(),
  stdout: z.string(),
  stderr: z.string(),
  omitted: z.array(z.object({ stream: z.enum(['stdout', 'stderr']), offset: z.number(), bytes: z.number() })),
  nextOffset: offsets,
  more: z.boolean(),
  note: z.string(),
})

export function toOutputAnswer(
  box: Box,
  processId: string,
  output: Output,
): Answer<z.infer<typeof outputSchema>> {
  const { stdout, stderr } = output
  const streams = [...(stdout === '' ? [] : [stdout]), ...(stderr === '' ? [] : [`stderr:\n${stderr}`])].map(
    (text) => (text.endsWith('\n') ? text : `${text}\n`),
  )
  const data = streams.length === 0 ? 'There is no output here.' : labelData(box.name, streams.join(''))
  return {
    text: [describeState(box, processId, output), ...describeRest(output), data].join('\n'),
    data: { box: box.name, processId, ...output, note: DATA_NOTE },
  }
}

function describeState(box: Box, processId: string, output: Output): string {
  const { status, exitCode, signal, timedOut, nextOffset } = output
  const command = `The command ${processId} on box ${box.name}`
  if (status === 'running')
    return `${command} is still running. Do not start it again: call read_output with this processId and offset ${JSON.stringify(nextOffset)} to wait for more, or stop_command.`
  if (timedOut) return `${command} was terminated by its time limit.`
  if (status === 'killed') return `${command} was terminated by the signal ${signal ?? 'KILL'}.`
  if (status === 'lost')
    return `${command} was lost: the box stopped, and it is not known how the command ended.`
  return `${command} exited with ${exitCode}.`
}

/** The streams are named with their sizes: the box can print such a line too. */
function describeRest({ omitted, more, status, nextOffset }: Output): string[] {
  const lines = omitted.map(
    ({ stream, offset, bytes }) =>
      `${bytes} bytes of ${stream} are not shown. Call read_output with ${stream} ${offset} in offset for them.`,
  )
  if (more && status !== 'running')
    lines.push(`More output follows: call read_output with offset ${JSON.stringify(nextOffset)}.`)
  return lines
}
