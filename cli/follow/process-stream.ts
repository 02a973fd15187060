// Reads the event stream of a detached process over several connections.
import { parseErrorEvent } from './disconnect.ts'
import { readEvents, type StreamEvent, type StreamName } from './events.ts'
import { type ResumableStreamOptions, readResumableStream } from './resumable-stream.ts'

export type ProcessStreamOptions = ResumableStreamOptions<StreamEvent> & {
  processId: string
  query?: { streams?: StreamName; since?: string; timestamps?: 'true' }
}

/** Resolves once `onEvent` returns true. Throws as readResumableStream does. */
export const readProcessStream = ({ processId, query, ...options }: ProcessStreamOptions): Promise<void> =>
  readResumableStream(
    {
      route: `/exec/${encodeURIComponent(processId)}/stream`,
      query: { encoding: 'base64', ...query },
      readEvents,
      classify({ name, data }) {
        if (name === 'error') return parseErrorEvent(data)
        if (name === 'reconnect')
          return { reason: 'The coordinator requested a reconnect.', retryAfter: null }
        return name === 'attached' ? 'connected' : 'data'
      },
    },
    options,
  )
