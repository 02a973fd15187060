// Requests for the prompts of a box.
import { createError, toLostError } from '../../client/http/errors.ts'
import { readEvents } from '../../client/http/events.ts'
import type {
  ConversationList,
  PromptEvent,
  PromptEvents,
  PromptInterrupted,
  PromptList,
  PromptQueued,
  PromptRequest,
  PromptStarted,
  PromptStatus,
  Run,
} from '../../shared/api/prompts.ts'
import type { BoxClient } from './box-client.ts'

/** The events of the stream of all runs. */
export type StreamHandlers = {
  onRun(run: Run): void
  onEvent(runId: string, event: PromptEvent): void
  onRunDone(run: Run): void
  /** The position after the last event, for the next connection. */
  onPosition(lastEventId: string): void
}

/** The most events of a page. */
const PAGE_EVENTS = '1000'

export type Prompts = ReturnType<typeof createPrompts>

/** The methods reject with BoxwoodError. */
export function createPrompts(client: Pick<BoxClient, 'send' | 'open'>) {
  const runPath = (id: string, action = '') => `prompts/${encodeURIComponent(id)}${action}`
  return {
    /** @param conversation null: of all conversations */
    list: (conversation: string | null) =>
      client.send<PromptList>(
        'GET',
        `prompts${conversation === null ? '' : `?${new URLSearchParams({ conversation })}`}`,
      ),
    listConversations: () => client.send<ConversationList>('GET', 'prompts/conversations'),
    loadRun: (id: string) => client.send<PromptStatus>('GET', runPath(id)),
    loadEvents: (id: string, after: number) =>
      client.send<PromptEvents>(
        'GET',
        runPath(id, `/events?${new URLSearchParams({ after: String(after), limit: PAGE_EVENTS })}`),
      ),
    start: (request: PromptRequest) =>
      client.send<PromptStarted | PromptQueued>('POST', 'prompts', { body: request }),
    interrupt: (id: string) => client.send<PromptInterrupted>('POST', runPath(id, '/interrupt')),
    /**
     * Streams the runs in progress. Resolves when there is none any more. Rejects when the connection is lost, and with the
     * reason of an aborted signal.
     */
    async follow(lastEventId: string, signal: AbortSignal, handlers: StreamHandlers): Promise<void> {
      const headers = { accept: 'text/event-stream', ...(lastEventId && { 'last-event-id': lastEventId }) }
      const response = await client.open('prompts/events', { headers, signal })
      for await (const { event, data, id } of readEvents(response, signal)) {
        const fields = JSON.parse(data)
        if (event === 'run') handlers.onRun(fields.run)
        else if (event === 'prompt') handlers.onEvent(fields.runId, fields)
        else if (event === 'run.done') handlers.onRunDone(fields.run)
        if (id) handlers.onPosition(id)
        if (event === 'done') return
        // An error about one run, which has been deleted, does not end the stream.
        if (event === 'error' && fields.code !== 'not_found') throw createError({ ...fields, status: 0 })
      }
      throw toLostError()
    },
  }
}
