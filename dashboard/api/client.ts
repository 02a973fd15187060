// Sends requests to the API of the coordinator, with the session cookie of the browser.
import { createCalls } from '../../client/http/calls.ts'
import type { BoxwoodError } from '../../client/http/errors.ts'
import type { Transport } from '../../client/http/transport.ts'
import type { Box, BoxDetail, CreateBoxRequest, PatchBoxRequest } from '../../shared/api/boxes.ts'
import type {
  Command,
  CommandList,
  CommandListQuery,
  CommandOutput,
  CommandOutputQuery,
} from '../../shared/api/commands.ts'
import type { DownloadLink } from '../../shared/api/download-links.ts'
import type { Environment } from '../../shared/api/environments.ts'
import type { RegionList } from '../../shared/api/images.ts'
import type { CpuOfBoxes, Metrics } from '../../shared/api/metrics.ts'
import type { PolicyResponse } from '../../shared/api/policies.ts'
import type {
  CreatePortShareRequest,
  CreatePortShareResponse,
  PortShares,
} from '../../shared/api/port-shares.ts'
import type { ProcsAt } from '../../shared/api/process-snapshots.ts'
import type { CurrentSession, SignedIn } from '../../shared/api/sessions.ts'
import type { CreateSnapshotRequest, ForkRequest, Snapshot } from '../../shared/api/snapshots.ts'
import type { TeamStatus } from '../../shared/api/team.ts'
import type { CreateTicketResponse } from '../../shared/api/tickets.ts'
import type { Region, Tier } from '../../shared/tiers.ts'
import { RETRY_MS } from './box-client.ts'
import { createPullImage } from './pull-image.ts'

export type ClientOptions = {
  /** The URL of the coordinator, with a slash at its end. */
  base: string
  /** Sends the cookie of the session. */
  transport: Transport
}

/** @param key the idempotency key: a repeated request with the same key has the effect and the response of the first one */
export type ClientSend = <Result>(
  method: string,
  path: string,
  body?: object,
  key?: string,
) => Promise<Result>

/** The longest lifetime of a ticket (spec §5.10). */
const TICKET_SECONDS = 3600

const toTime = (ms: number): string => new Date(ms).toISOString()

/** Without the parameters that are undefined. */
function formatQuery(params: object): string {
  const known = Object.entries(params).filter(([, value]) => value !== undefined)
  return known.length === 0
    ? ''
    : `?${new URLSearchParams(known.map(([name, value]) => [name, String(value)]))}`
}

/** `to` is in the format of the API. */
export type CommandQuery = Omit<CommandListQuery, 'to'> & { to?: string }

export type Client = ReturnType<typeof createClient>

/** The methods reject with BoxwoodError. */
export function createClient({ base, transport }: ClientOptions) {
  const calls = createCalls({
    url: base,
    apiKey: null,
    transport,
    retryMs: RETRY_MS,
    traceparent: () => undefined,
  })
  // What changes something may take longer than a response usually does.
  const send: ClientSend = (method, path, body, key) =>
    calls.json(
      method,
      `/api/v1/${path}`,
      { body, isSlow: method !== 'GET', isIdempotent: key !== undefined },
      key === undefined ? {} : { idempotencyKey: key },
    )
  const boxPath = (id: string, action = '') => `boxes/${encodeURIComponent(id)}${action}`

  return {
    send,
    /** Null: there is no session. */
    loadSession: (): Promise<CurrentSession | null> =>
      send<CurrentSession>('GET', 'session').catch((error: BoxwoodError) => {
        if (error.status === 401) return null
        throw error
      }),
    signOut: () => send<undefined>('DELETE', 'session'),
    loadBox: (id: string) => send<BoxDetail>('GET', boxPath(id)),
    createBox: (request: CreateBoxRequest, key: string) => send<{ box: Box }>('POST', 'boxes', request, key),
    updateBox: (id: string, request: PatchBoxRequest) => send<{ box: Box }>('PATCH', boxPath(id), request),
    resizeBox: (id: string, tier: Tier, key: string) =>
      send<{ box: Box }>('POST', boxPath(id, '/resize'), { target_tier: tier }, key),
    giveBox: (id: string, ownerUserId: string, key: string) =>
      send<{ box: Box }>('POST', boxPath(id, '/owner'), { ownerUserId }, key),
    moveBox: (id: string, region: Region, key: string) =>
      send<{ box: Box }>('POST', boxPath(id, '/region'), { region }, key),
    wakeBox: (id: string) => send<{ box: Box }>('POST', boxPath(id, '/wake')),
    suspendBox: (id: string) => send<{ box: Box }>('POST', boxPath(id, '/suspend')),
    /** Terminates the processes, also of a box that is suspended. */
    stopBox: (id: string) => send<{ box: Box }>('POST', boxPath(id, '/suspend?stop=1')),
    forkBox: (id: string, request: ForkRequest, key: string) =>
      send<{ box: Box; snapshot: Snapshot }>('POST', boxPath(id, '/fork'), request, key),
    createSnapshot: (request: CreateSnapshotRequest, key: string) =>
      send<{ snapshot: Snapshot }>('POST', 'snapshots', request, key),
    createTemplate: (id: string, name: string, key: string) =>
      send<{ snapshot: Snapshot }>('POST', boxPath(id, '/template'), { name }, key),
    /** The usage of the boxes, and the names of their owners. */
    loadTeamStatus: () => send<TeamStatus>('GET', 'team/status'),
    listRegions: () => send<RegionList>('GET', 'regions'),
    loadPolicies: () => send<PolicyResponse>('GET', 'workspace/policies'),
    listEnvironments: () => send<{ environments: Environment[] }>('GET', 'environments'),
    pullImage: createPullImage(calls),
    createTicket: (id: string) =>
      calls.json<CreateTicketResponse>('POST', `/api/v1/${boxPath(id, '/tickets')}`, {
        body: { expiresInSeconds: TICKET_SECONDS },
      }),
    listCommands: (id: string, query: CommandQuery) =>
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
    /** @param query milliseconds since the epoch */
    loadMetrics: (id: string, query: { from: number; to: number }) =>
      send<Metrics>(
        'GET',
        boxPath(id, `/metrics${formatQuery({ from: toTime(query.from), to: toTime(query.to) })}`),
      ),
    /** The CPU of the last hour. @param ids of at most 100 boxes */
    listCpu: (ids: readonly string[]) =>
      send<CpuOfBoxes>('GET', `metrics/cpu${formatQuery({ boxes: ids.join(',') })}`),
    /** @param t milliseconds since the epoch */
    loadProcessesAt: (id: string, t: number) =>
      send<ProcsAt>('GET', boxPath(id, `/procs-at${formatQuery({ t: toTime(t) })}`)),
    loadPortShares: (id: string) => send<PortShares>('GET', boxPath(id, '/port-shares')),
    createPortShare: (id: string, request: CreatePortShareRequest) =>
      send<CreatePortShareResponse>('POST', boxPath(id, '/port-shares'), request),
    revokePortShare: (shareId: string) =>
      send<unknown>('DELETE', `port-shares/${encodeURIComponent(shareId)}`),
    loadSnapshots: () => send<{ snapshots: Snapshot[] }>('GET', 'snapshots'),
    deleteBox: (id: string) => send<{ box: Box }>('DELETE', boxPath(id)),
    switchWorkspace: (workspaceId: string) => send<SignedIn>('POST', 'session/workspace', { workspaceId }),
    /** The build of the dashboard that the coordinator serves now. */
    loadBuildId: async () => (await calls.json<{ buildId: string }>('GET', '/dashboard/build.json')).buildId,
  }
}
