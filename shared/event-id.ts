// The ids of the events of a process output stream (spec §4.14). Does not import zod, whose load time the box command avoids.
import type { Offsets } from './api/processes.ts'
import { ApiError } from './errors.ts'

/** The id of an event: the reader's position after it. Also the value of the header Last-Event-ID. */
export const formatEventId = ({ stdout, stderr }: Offsets): string => `${stdout}:${stderr}`

/** @throws ApiError invalid_request */
export function parseEventId(text: string): Offsets {
  const [, stdout, stderr] = /^(\d{1,15}):(\d{1,15})$/.exec(text) ?? []
  if (stdout === undefined || stderr === undefined)
    throw new ApiError(
      'invalid_request',
      'Last-Event-ID must be two offsets, <stdout>:<stderr>, such as 1024:0.',
    )
  return { stdout: Number(stdout), stderr: Number(stderr) }
}
