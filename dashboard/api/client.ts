// Sends requests to the API of the coordinator, with the session cookie of the browser.
import type { Box, BoxDetail, CreateBoxRequest } from '../../shared/api/boxes.ts'
import type {
  Command,
  CommandList,
  CommandListQuery,
  CommandOutput,
  CommandOutputQuery,
} from '../../shared/api/commands.ts'
import type { DownloadLink } from '../../shared/api/download-links.ts'
import type { CurrentSession } from '../../shared/api/sessions.ts'
import type { CreateSnapshotRequest, ForkRequest, Snapshot } from '../../shared/api/snapshots.ts'
import type { CreateTicketResponse } from '../../shared/api/tickets.ts'
import type { RequestError } from './errors.ts'
import { createSend, type Fetch } from './send.ts'

export type ClientOptions = {
  /** The URL of the coordinator, with a slash at its end. */
  base: string
  fetch: Fetch
  /** Returns a new idempotency key. */
  createKey(): string
}

/** The longest lifetime of a ticket (spec §5.10). */
const TICKET_SECONDS = 3600

export type Client = ReturnType<typeof createClient>

/** The methods reject with RequestError. */
export function createClient({ base, fetch, createKey }: ClientOptions) {
  const sendOnce = createSend(fetch, new URL('api/v1/', base).href)
  const send = <Result>(method: string, path: string, body?: object, isIdempotent = false) =>
    sendOnce<Result>(method, path, {
      ...(body && { body }),
      ...(isIdempotent && { headers: { 'idempotency-key': createKey() } }),
    })
  const boxPath = (id: string, action = '') => `boxes/${encodeURIComponent(id)}${action}`

  return {
    /** Null: there is no session. */
    loadSession: (): Promise<CurrentSession | null> =>
      send<CurrentSession>('GET', 'session').catch((error: RequestError) => {
        if (error.status === 401) return null
        throw error
      }),
    signOut: () => send<undefined>('DELETE', 'session'),
    loadBox: (id: string) => send<BoxDetail>('GET', boxPath(id)),
    createBox: (request: CreateBoxRequest) => send<{ box: Box }>('POST', 'boxes', request, true),
    wakeBox: (id: string) => send<{ box: Box }>('POST', boxPath(id, '/wake')),
    suspendBox: (id: string) => send<{ box: Box }>('POST', boxPath(id, '/suspend')),
    forkBox: (id: string, request: ForkRequest) =>
      send<{ box: Box; snapshot: Snapshot }>('POST', boxPath(id, '/fork'), request, true),
    createSnapshot: (request: CreateSnapshotRequest) =>
      send<{ snapshot: Snapshot }>('POST', 'snapshots', request, true),
    createTicket: (id: string) =>
      send<CreateTicketResponse>('POST', boxPath(id, '/tickets'), { expiresInSeconds: TICKET_SECONDS }),
    listCommands: (id: string, query: CommandListQuery) =>
      send<CommandList>('GET', boxPath(id, `/commands${formatQuery(query)}`)),
    loadCommand: (id: string, commandId: string) =>
      send<{ command: Command }>('GET', boxPath(id, `/commands/${encodeURIComponent(commandId)}`)),
    loadCommandOutput: (id: string, commandId: string, query: CommandOutputQuery) =>
      send<CommandOutput>(
        'GET',
        boxPath(id, `/commands/${encodeURIComponent(commandId)}/output${formatQuery(query)}`),
      ),
    createDownloadLink: (id: string, path: string) =>
      send<DownloadLink>('POST', boxPath(id, '/download-links'), { path }),
    deleteBox: (id: string) => send<{ box: Box }>('DELETE', boxPath(id)),
    /** The build of the dashboard that the coordinator serves now. */
    async loadBuildId(): Promise<string | null> {
      const response = await fetch(new URL('dashboard/build.json', base))
      return response.ok ? ((await response.json()) as { buildId: string }).buildId : null
    },
  }
}

/** `{limit: 50, before: undefined}` → `?limit=50`. */
function formatQuery(query: object): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) params.set(name, String(value))
  return `?${params}`
}
