// One event of the stream as text/event-stream writes it.
import type { StreamEvents } from '../../../shared/api/processes.ts'
import type { StreamName } from '../detached/types.ts'

export type Offsets = Record<StreamName, number>
export type Encoding = 'utf8' | 'base64'

const frame = (name: string, { stdout, stderr }: Offsets, data: string): string =>
  `event: ${name}\nid: ${stdout}:${stderr}\ndata: ${data}\n\n`

/** @param after the offsets once the event has been read */
export const encodeEvent = <N extends keyof StreamEvents>(
  name: N,
  after: Offsets,
  data: StreamEvents[N],
): string => frame(name, after, JSON.stringify(data))

/** `after[name]` is the offset after the last of the bytes. */
export function encodeOutput(name: StreamName, after: Offsets, bytes: Buffer, encoding: Encoding): string {
  const text =
    encoding === 'base64' ? `"${bytes.toString('base64')}"` : JSON.stringify(bytes.toString('utf8'))
  const nextOffset = after[name]
  return frame(
    name,
    after,
    `{"data":${text},"offset":${nextOffset - bytes.length},"nextOffset":${nextOffset}}`,
  )
}
