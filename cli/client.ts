// What the commands ask the coordinator: both hosts, their error envelopes, and the wait that a 429 asks for.
import type { IncomingMessage } from 'node:http'
import type { Account } from '../shared/api/account.ts'
import type { Box, BoxDetail } from '../shared/api/boxes.ts'
import { EXIT, Failure } from './exit-codes.ts'
import type { Body } from './http.ts'
import type { Place } from './locate.ts'
import { printable } from './output.ts'
import { createRequests, type Outcome } from './requests.ts'

export type Client = {
  /** Asks the control plane; `path` begins with a slash. Throws Failure. */
  control<T>(method: string, path: string, body?: unknown): Promise<T>
  /** The box with this name or id; throws Failure (not found). */
  findBox(name: string): Promise<Box>
  boxDetail(id: string): Promise<BoxDetail>
  /** The way into a box: costs one GET /me, where the edge's address is read. */
  edge(name: string): Promise<Edge>
}

export type Edge = {
  /** `route` is such as /exec. Throws Failure. */
  json<T>(method: string, route: string, body?: unknown): Promise<T>
  /** The answer with its body unread. `body` is called again for each attempt. */
  stream(
    method: string,
    route: string,
    query: Record<string, string>,
    body?: () => Body,
  ): Promise<IncomingMessage>
  /** One attempt at a GET, whatever comes of it. Throws Failure when nobody answered. */
  attempt(route: string, query: Record<string, string>, options: Attempt): Promise<Outcome>
  /** The same way in for a moment longer, for cleaning up after the signal was raised. */
  afterwards(): Edge
}

export type Attempt = { headers: Record<string, string>; signal: AbortSignal }

/** Milliseconds that cleaning up may take. */
const CLEANING_MS = 10_000

export function createClient(place: Place, signal: AbortSignal): Client {
  const { json } = createRequests(place, signal)
  const control = <T>(method: string, path: string, body?: unknown) =>
    json<T>(method, `${place.baseUrl}${path}`, body)

  return {
    control,
    boxDetail: (id) => control('GET', `/boxes/${encodeURIComponent(id)}`),
    async findBox(name) {
      const { boxes } = await control<{ boxes: Box[] }>('GET', '/boxes')
      const matching = boxes.filter((box) => box.id === name || box.hostname === name)
      const box = matching.find(isLive) ?? matching.find(({ id }) => id === name)
      if (box === undefined) throw noSuchBox(name)
      return box
    },
    async edge(name) {
      const { boxes, edge } = await control<Account>('GET', '/me')
      const known = boxes.some((box) => (box.hostname === name || box.id === name) && isLive(box))
      const root = `${edge.url.replace(/\/+$/, '')}/v1/box/${encodeURIComponent(name)}`
      const open = (until: AbortSignal): Edge => {
        const requests = createRequests(place, until)
        const explain = (error: unknown): never => {
          throw error instanceof Failure ? explained(error, name, known) : error
        }
        return {
          json: <T>(method: string, route: string, body?: unknown) =>
            requests.json<T>(method, root + route, body).catch(explain),
          stream(method, route, query, body) {
            const url = `${root}${route}?${new URLSearchParams(query)}`
            return requests.send(method, url, body ? 'application/octet-stream' : null, body).catch(explain)
          },
          async attempt(route, query, { headers, signal }) {
            const url = `${root}${route}?${new URLSearchParams(query)}`
            const outcome = await createRequests(place, signal).once({ method: 'GET', url, headers })
            if (outcome.ok) return outcome
            return { ...outcome, failure: explained(outcome.failure, name, known) }
          },
          afterwards: () => open(AbortSignal.timeout(CLEANING_MS)),
        }
      }
      return open(signal)
    },
  }
}

const isLive = (box: Box): boolean => box.observedState !== 'terminated'

const noSuchBox = (name: string): Failure =>
  new Failure(EXIT.notFound, `There is no box ${printable(name)}. \`box ls\` shows those there are.`, {
    code: 'no_such_box',
  })

/** The edge says not_found of boxes and of paths alike: `known` tells which is meant. */
function explained(error: Failure, name: string, known: boolean): Failure {
  if (error.code === 'not_found' && !known) return noSuchBox(name)
  if (error.code !== 'box_not_running') return error
  const said = `${name} is not running. \`box wake ${name}\` starts it. (box_not_running)`
  return new Failure(error.exitCode, said, { code: error.code })
}
