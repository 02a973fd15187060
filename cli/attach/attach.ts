// Attaches to a command or a terminal of a box, and reports outages.
import {
  type Attachment,
  type AttachmentOptions,
  attach as attachClient,
} from '../../client/attach/attachment.ts'
import type { Offsets } from '../../client/attach/format.ts'
import type { EdgeClient } from '../connection/client.ts'
import { createOutageNotices, describeOutage, type NoticeOptions } from '../follow/outage-notices.ts'
import { openSocket } from './open-socket.ts'

export type AttachOptions = NoticeOptions &
  Omit<AttachmentOptions, 'connect' | 'check' | 'onConnection' | 'onData' | 'onFailure' | 'outageMs'> & {
    edge: Pick<EdgeClient, 'connect' | 'toCliError'>
    /** Relative to the box, such as /terminal. */
    route: string
    /** Default: the offsets of a command. */
    getQuery?(position: Offsets | null): Record<string, string>
  }

/** The result rejects with a CliError when a new connection cannot help. */
export function attach({ edge, route, getQuery = formatOffsets, ...options }: AttachOptions): Attachment {
  const outage = createOutageNotices(options)
  const toCliError = (error: unknown) => edge.toCliError(error, route)
  const attachment = attachClient({
    ...options,
    connect: (position, handlers, signal) =>
      openSocket(edge.connect(route, getQuery(position), signal), handlers),
    onData: outage.recordData,
    onConnection(error) {
      if (error === null) outage.recordConnect()
      else outage.recordDisconnect(describeOutage(error, toCliError))
    },
  })
  const result = attachment.result
    .catch((error: unknown) => {
      throw toCliError(error)
    })
    .finally(outage.close)
  return { ...attachment, result }
}

const formatOffsets = (position: Offsets | null): Record<string, string> => ({
  stdoutOffset: String(position?.stdout ?? 0),
  stderrOffset: String(position?.stderr ?? 0),
})
