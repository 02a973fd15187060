// Route GET /exec/{processId}/stream: sends the output of a detached process over a dial-back connection (spec §4.14).
import type { Logger } from 'pino'
import { streamQuerySchema } from '../../../shared/api/processes.ts'
import { parseEventId } from '../../../shared/event-id.ts'
import { readDialBackId } from '../../requests/dial-back-id.ts'
import { EMPTY_RESPONSE, type JsonRouter } from '../../requests/json-routes.ts'
import type { StreamDialer } from '../../tunnel/stream-dialer.ts'
import { validateRequest } from '../../validate-request.ts'
import { findProcess } from '../detached/routes.ts'
import type { DetachedProcesses } from '../detached/types.ts'
import { type StreamOptions, streamFrames } from './frames.ts'

export type StreamDeps = {
  processes: DetachedProcesses
  log: Logger
  streamDialer: StreamDialer
}

/**
 * The response is empty; the frames follow on the connection with the id of DIAL_BACK_HEADER.
 * @throws ApiError not_found, invalid_request
 */
export function streamRoutes(router: JsonRouter, { processes, log, streamDialer }: StreamDeps): void {
  router.add('GET', '/exec/:processId/stream', ({ params: { processId }, query, headers }) => {
    const id = readDialBackId(headers)
    const options = {
      detachedProcess: findProcess(processes, processId),
      ...parseStreamRequest(query, headers['last-event-id']),
      onError: (err: unknown) => log.error({ err, processId }, 'failed to read process output'),
    }
    streamDialer
      .send(id, (signal) => streamFrames(options, signal))
      // A disconnect of the client has this effect too.
      .catch((err: unknown) => log.debug({ err, processId }, 'output stream closed early'))
    return EMPTY_RESPONSE
  })
}

function parseStreamRequest(
  values: unknown,
  lastEventId: string | string[] | undefined,
): Pick<StreamOptions, 'offsets' | 'streams' | 'encoding' | 'since' | 'timestamps'> {
  const query = validateRequest(streamQuerySchema, values, { root: 'query' })
  const { stdoutOffset = 0, stderrOffset = 0, streams = 'both', encoding = 'utf8', since, timestamps } = query
  return {
    offsets:
      lastEventId === undefined
        ? { stdout: stdoutOffset, stderr: stderrOffset }
        : parseEventId(String(lastEventId)),
    streams: streams === 'stdout' || streams === 'stderr' ? [streams] : ['stdout', 'stderr'],
    encoding,
    since: since === undefined ? null : Date.parse(since),
    timestamps: timestamps ?? false,
  }
}
