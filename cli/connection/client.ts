// The API client of the commands: requests to the control plane and to the edge.
import type { WebSocket } from 'ws'
import type { OpenResponse, RequestBody } from '../../client/http/transport.ts'
import type { Account } from '../../shared/api/account.ts'
import type { Box, BoxDetail } from '../../shared/api/boxes.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { createApiRequests } from './api-requests.ts'
import { findBox, isLive, noSuchBoxError } from './find-box.ts'
import type { CoordinatorConfig } from './find-coordinator.ts'

export type Client = {
  /** Sends a request to the control plane; `path` starts with a slash. Throws CliError. */
  request<T>(method: string, path: string, body?: unknown): Promise<T>
  /** Sends the request with the session of `box login`: no key may use these routes. Throws CliError without a session. */
  requestBySession<T>(method: string, path: string, body?: unknown): Promise<T>
  /** Sends a POST to the control plane, and accepts a stream of events. Resolves with a response whose body is unread. Throws CliError. */
  openEvents(path: string, body: unknown): Promise<OpenResponse>
  /** Sends a GET to the control plane. Resolves with a response whose body is unread. Throws CliError. */
  download(path: string): Promise<OpenResponse>
  /** Finds a box by name, id or unique prefix of its id; throws CliError (not found). */
  findBox(nameOrId: string): Promise<Box>
  getBoxDetail(id: string): Promise<BoxDetail>
  /** A client for the edge routes of one box. Sends one GET /me, because it returns the edge's address. */
  createEdgeClient(nameOrId: string): Promise<EdgeClient>
  /** The same client with another signal, for requests that Ctrl-C must not abort. */
  withSignal(signal: AbortSignal): Client
}

export type EdgeClient = {
  /** The name; the id if the user typed the id. */
  boxName: string
  /** null: no such box. */
  boxId: string | null
  /** null: the box does not exist, or is deleted. */
  hostname: string | null
  /** The error for a box that does not exist, with similar names; null: the box exists. */
  noSuchBox: CliError | null
  /** When the client was created. null: no such box. */
  observedState: Box['observedState'] | null
  /** `route` is relative to the box, such as /exec. Throws CliError. */
  requestJson<T>(method: string, route: string, body?: unknown, headers?: Record<string, string>): Promise<T>
  /** Resolves with a response whose body is unread. `createBody` is called for each attempt. */
  send(
    method: string,
    route: string,
    query: Record<string, string>,
    createBody?: (() => RequestBody | Promise<RequestBody>) | null,
    headers?: Record<string, string>,
  ): Promise<OpenResponse>
  /** Opens a stream of events once, without retries. Rejects with BoxwoodError, which `toCliError` translates. */
  openStream(route: string, query: Record<string, string>, options: StreamOptions): Promise<OpenResponse>
  /** The error of a request to this route in words for the user; another error than BoxwoodError is returned as it is. */
  toCliError(error: unknown, route: string): unknown
  /** Opens a WebSocket once, without retries: it is paused. Rejects with BoxwoodError, which `toCliError` translates. */
  connect(route: string, query: Record<string, string>, signal: AbortSignal): Promise<WebSocket>
  /** The same client with a signal of its own, for cleaning up after Ctrl-C. */
  forCleanup(): EdgeClient
}

export type StreamOptions = { headers: Record<string, string>; signal: AbortSignal }

const CLEANUP_TIMEOUT_MS = 10_000
const API_PATH = '/api/v1'

export function createClient(config: CoordinatorConfig, signal: AbortSignal): Client {
  const { json, open } = createApiRequests(config, { signal })
  const request = <T>(method: string, path: string, body?: unknown) =>
    json<T>(method, API_PATH + path, { body })
  /** Only for a message: another problem must not hide that the box does not exist. */
  async function wasDeleted(name: string): Promise<boolean> {
    try {
      const query = new URLSearchParams({ box: name, deleted: '1' })
      const { boxes } = await request<{ boxes: Box[] }>('GET', `/boxes?${query}`)
      return boxes.some(({ hostname }) => hostname === name)
    } catch (error) {
      if (error instanceof CliError) return false
      throw error
    }
  }

  return {
    request,
    async requestBySession(method, path, body) {
      assertHasSession(config)
      const session = createApiRequests({ ...config, key: null }, { signal })
      return session.json(method, API_PATH + path, { body })
    },
    openEvents(path, body) {
      return open('POST', API_PATH + path, { body }, { headers: { accept: 'text/event-stream' } })
    },
    download: (path) => open('GET', API_PATH + path),
    withSignal: (otherSignal) => createClient(config, otherSignal),
    getBoxDetail: (id) => request('GET', `/boxes/${encodeURIComponent(id)}`),
    async findBox(nameOrId) {
      const { boxes } = await request<{ boxes: Box[] }>('GET', `/boxes?${toBoxQuery(nameOrId)}`)
      const box = findBox(boxes, nameOrId)
      if (box !== undefined) return box
      const all = await request<{ boxes: Box[] }>('GET', '/boxes?live=1')
      throw noSuchBoxError(nameOrId, all.boxes, await wasDeleted(nameOrId))
    },
    async createEdgeClient(nameOrId) {
      const { boxes, edge } = await request<Account>('GET', `/me?${toBoxQuery(nameOrId)}`)
      const box = findBox(boxes, nameOrId)
      // A prefix of the id is not valid in a URL.
      const boxName = box === undefined || box.id === nameOrId ? nameOrId : box.hostname
      const boxExists = box !== undefined && isLive(box)
      const noSuchBox = boxExists
        ? null
        : noSuchBoxError(boxName, (await request<Account>('GET', '/me')).boxes, await wasDeleted(boxName))
      const edgeUrl = edge.url.replace(/\/+$/, '')
      const boxPath = `/v1/box/${encodeURIComponent(boxName)}`
      const createWithSignal = (edgeSignal: AbortSignal): EdgeClient => {
        const requests = createApiRequests(config, { signal: edgeSignal, edgeUrl })
        const translate = (error: CliError, route: string) =>
          toEdgeError(error, { boxName, noSuchBox, route })
        const rethrow = (route: string) => (error: unknown) => {
          throw error instanceof CliError ? translate(error, route) : error
        }
        return {
          boxName,
          boxId: box?.id ?? null,
          hostname: boxExists ? box.hostname : null,
          noSuchBox,
          observedState: box?.observedState ?? null,
          requestJson: <T>(method: string, route: string, body?: unknown, headers?: Record<string, string>) =>
            requests
              .json<T>(method, boxPath + route, { body }, headers === undefined ? {} : { headers })
              .catch(rethrow(route)),
          send(method, route, query, createBody, headers = {}) {
            const input = { query, ...(createBody && { body: createBody, isRaw: true }) }
            return requests.open(method, boxPath + route, input, { headers }).catch(rethrow(route))
          },
          openStream: (route, query, options) => requests.openStream(boxPath + route, { query }, options),
          toCliError(error, route) {
            const translated = requests.translate(error)
            return translated instanceof CliError ? translate(translated, route) : translated
          },
          connect(route, query, connectSignal) {
            const path = `${boxPath}${route}?${new URLSearchParams(query)}`
            return createApiRequests(config, { signal: connectSignal, edgeUrl }).connect(path)
          },
          forCleanup: () => createWithSignal(AbortSignal.timeout(CLEANUP_TIMEOUT_MS)),
        }
      }
      return createWithSignal(signal)
    },
  }
}

const toBoxQuery = (nameOrId: string) => new URLSearchParams({ box: nameOrId })

/** @throws CliError */
function assertHasSession({ keySource, profile, baseUrl }: CoordinatorConfig): void {
  if (profile?.session !== undefined) return
  const message =
    keySource === 'BOXWOOD_API_KEY'
      ? 'No API key may do this, and BOXWOOD_API_KEY is set. Unset it, and sign in with `box login`.'
      : `This needs a sign-in at ${new URL(baseUrl).origin}, not an API key. Run \`box login\`.`
  throw new CliError(EXIT.notAuthenticated, message, { code: 'not_signed_in' })
}

type EdgeRequest = { boxName: string; noSuchBox: CliError | null; route: string }

/** The edge's not_found means the box, or a path or process on it: `noSuchBox` decides which. */
function toEdgeError(error: CliError, { boxName, noSuchBox, route }: EdgeRequest): CliError {
  if (error.code === 'not_found' && noSuchBox !== null) return noSuchBox
  // The coordinator says why such a box cannot be started.
  if (error.code !== 'box_not_running' || error.fields.state === 'provision_failed') return error
  const history = route.startsWith('/exec')
    ? ` \`box history ${boxName}\` and \`box output ${boxName} ID\` also work while it is not running.`
    : ''
  const message = `Box ${boxName} is not running. Start it with \`box wake ${boxName}\`.${history} (${error.code})`
  return new CliError(error.exitCode, message, { code: error.code })
}
