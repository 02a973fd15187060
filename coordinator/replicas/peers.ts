// The other coordinators: where they listen, calls of their operations, and the proof of what comes from them.
import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  request as requestHttp,
  type ServerResponse,
} from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { text } from 'node:stream/consumers'
import type { Logger } from 'pino'
import type { z } from 'zod'
import { ApiError, ERRORS, type ErrorCode } from '../../shared/errors.ts'
import type { Db } from '../db/open.ts'
import { ConnectionWatch, type ConnectionWatchOptions } from './connection-watch.ts'
import { hashBody, PEER_HEADER, type PeerClaim, type PeerKey, signClaim, verifyClaim } from './peer-header.ts'
import type { Replica } from './replica.ts'
import { findReplicaUrl, listAlive } from './store.ts'

/** Calls are requests with this path. */
export const PEER_PATH = '/replica/calls'

/** Where another coordinator listens, for forwarded requests. */
export type PeerAddress = {
  replicaId: string
  /** An origin. */
  url: URL
  agent: HttpAgent
  /** False: it does not respond, and a request would wait in vain. */
  isReachable: boolean
  /** Call it for each request that is forwarded: its connection is closed when the other coordinator does not respond any more. */
  watch(request: ClientRequest): void
}

export type PeerCallOptions<O> = {
  /** Of the output. */
  schema: z.ZodType<O>
  /** For the complete response. */
  timeoutMs: number
  signal?: AbortSignal | undefined
}

export type Peers = {
  /** Serves the calls of an operation. */
  handle<I>(
    operation: string,
    schema: z.ZodType<I>,
    serve: (input: I, signal: AbortSignal) => Promise<unknown>,
  ): void
  /**
   * Calls the operation of another coordinator. Rejects with its ApiError, with the reason of the signal, and with
   * PeerUnreachableError when there is no response: it is unknown then whether the operation has run.
   */
  call<O>(replicaId: string, operation: string, input: unknown, options: PeerCallOptions<O>): Promise<O>
  /** Calls the operation of all others that are alive. An outcome may be the error of call(). */
  callAll<O>(
    operation: string,
    input: unknown,
    options: PeerCallOptions<O>,
  ): Promise<PromiseSettledResult<O>[]>
  /** null: there is no such coordinator. */
  findAddress(replicaId: string): Promise<PeerAddress | null>
  /** Returns the header of a request that is forwarded to the coordinator `to`. */
  sign(
    request: IncomingMessage,
    to: string,
    claim: Pick<PeerClaim, 'client' | 'box'>,
  ): [name: string, value: string]
  /** The claim of a request from another coordinator. null: it is from elsewhere */
  verify(request: IncomingMessage): PeerClaim | null
  /** Serves the requests with PEER_PATH. */
  serve(request: IncomingMessage, response: ServerResponse): void
  /** Reads the key that the coordinators have in common. Call it before anything else. */
  open(): Promise<void>
  close(): void
}

export class PeerUnreachableError extends Error {}

export type PeersOptions = {
  db: Db
  replica: Pick<Replica, 'id' | 'events'>
  /** Returns the key of the deployment. */
  openKey(): Promise<PeerKey>
  log: Pick<Logger, 'error'>
  /** For tests. */
  watch?: Pick<ConnectionWatchOptions, 'intervalMs' | 'pingMs'>
}

type Operation = { schema: z.ZodType; serve(input: unknown, signal: AbortSignal): Promise<unknown> }

/** The largest response of an agent to a call, in base64, with room for the rest. */
const MAX_CALL_BYTES = 96 * 1024 * 1024
const CONNECTION = { keepAlive: true, noDelay: true, maxFreeSockets: 64 }

export function createPeers({ db, replica, openKey, log, watch: watchOptions = {} }: PeersOptions): Peers {
  let opened: PeerKey | undefined
  const getKey = (): PeerKey => {
    if (opened === undefined) throw new Error('the key of the coordinators has not been read')
    return opened
  }
  const operations = new Map<string, Operation>()
  const others = new Map<string, { url: URL; watch: ConnectionWatch }>()
  const agents = { 'http:': new HttpAgent(CONNECTION), 'https:': new HttpsAgent(CONNECTION) }
  const forget = (id: string) => {
    others.get(id)?.watch.close()
    others.delete(id)
  }
  replica.events.on('stopped', forget)

  async function findAddress(replicaId: string): Promise<PeerAddress | null> {
    let other = others.get(replicaId)
    if (other === undefined) {
      const text = await findReplicaUrl(db, replicaId)
      if (text === null) return null
      const url = new URL(text)
      const created = {
        url,
        watch: new ConnectionWatch({ ...watchOptions, ping: (signal) => ping(url, signal) }),
      }
      // Another request may have read it meanwhile.
      other = others.get(replicaId) ?? created
      others.set(replicaId, other)
    }
    const { url, watch } = other
    return {
      replicaId,
      url,
      agent: url.protocol === 'https:' ? agents['https:'] : agents['http:'],
      isReachable: watch.isReachable,
      watch: (request) => watch.add(request),
    }
  }

  async function send(
    { url, agent, replicaId }: PeerAddress,
    body: string,
    signal: AbortSignal,
  ): Promise<string> {
    const line = { method: 'POST', url: PEER_PATH }
    const claim = { from: replica.id, to: replicaId, digest: hashBody(body) }
    const request = getRequestFunction(url)
    const outgoing: ClientRequest = request(url, {
      method: line.method,
      path: line.url,
      agent,
      signal,
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        [PEER_HEADER]: signClaim(getKey(), line, claim),
      },
    })
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.once('response', resolve).once('error', reject)
      outgoing.end(body)
    })
    const received = await text(response)
    if (response.statusCode !== 200)
      throw new Error(`the coordinator responded with status ${response.statusCode}`)
    return received
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const claim = verifyClaim(getKey(), request, replica.id)
    const body = claim?.digest === undefined ? null : await readBody(request)
    if (body === null || claim?.digest !== hashBody(body)) {
      response.writeHead(401, { connection: 'close' }).end()
      return
    }
    const { operation, input } = JSON.parse(body.toString()) as { operation: string; input: unknown }
    const closed = new AbortController()
    response.once('close', () => closed.abort())
    const result = await run(operations.get(operation), input, closed.signal)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result))
  }

  async function run(operation: Operation | undefined, input: unknown, signal: AbortSignal) {
    try {
      if (operation === undefined) throw new ApiError('not_found', 'This coordinator has no such operation.')
      return { output: (await operation.serve(operation.schema.parse(input), signal)) ?? null }
    } catch (err) {
      if (!(err instanceof ApiError)) log.error({ err }, 'failed to serve a call of another coordinator')
      const { code, message } = err instanceof ApiError ? err : new ApiError('control_plane_unavailable')
      return { error: { code, message } }
    }
  }

  const peers: Peers = {
    findAddress,
    async callAll(operation, input, options) {
      const ids = (await listAlive(db)).map(({ id }) => id).filter((id) => id !== replica.id)
      return Promise.allSettled(ids.map((id) => peers.call(id, operation, input, options)))
    },
    handle(operation, schema, serveOperation) {
      if (operations.has(operation)) throw new Error(`two operations have the name ${operation}`)
      operations.set(operation, { schema, serve: (input, signal) => serveOperation(input as never, signal) })
    },
    async call(replicaId, operation, input, { schema, timeoutMs, signal }) {
      const address = await findAddress(replicaId)
      if (address === null) throw new PeerUnreachableError('the other coordinator does not run any more')
      const timeout = AbortSignal.timeout(Math.ceil(timeoutMs))
      const signals = signal === undefined ? timeout : AbortSignal.any([signal, timeout])
      const received = await send(address, JSON.stringify({ operation, input }), signals).catch((error) => {
        if (signal?.aborted) throw signal.reason
        throw new PeerUnreachableError('the other coordinator does not respond', { cause: error })
      })
      const result = JSON.parse(received) as { output?: unknown; error?: { code: string; message: string } }
      if (result.error !== undefined) throw toApiError(result.error)
      return schema.parse(result.output)
    },
    sign: (request, to, claim) => [
      PEER_HEADER,
      signClaim(
        getKey(),
        { method: request.method ?? '', url: request.url ?? '' },
        { ...claim, from: replica.id, to },
      ),
    ],
    verify: (request) => verifyClaim(getKey(), request, replica.id),
    serve(request, response) {
      serve(request, response).catch((err: unknown) => {
        log.error({ err }, 'failed to respond to another coordinator')
        response.destroy()
      })
    },
    async open() {
      opened = await openKey()
    },
    close() {
      replica.events.off('stopped', forget)
      for (const { watch } of others.values()) watch.close()
      for (const agent of Object.values(agents)) agent.destroy()
    },
  }
  return peers
}

const getRequestFunction = ({ protocol }: URL) => (protocol === 'https:' ? requestHttps : requestHttp)

/** Any response is one. The connection is a new one: those that exist may be dead. */
async function ping(url: URL, signal: AbortSignal): Promise<void> {
  const request = getRequestFunction(url)
  const outgoing = request(new URL('/healthz', url), { agent: false, signal })
  await new Promise<void>((resolve, reject) => {
    outgoing.once('error', reject).once('response', (response) => {
      response.once('error', () => undefined).resume()
      resolve()
    })
    outgoing.end()
  })
}

/** Returns null when it is too large. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > MAX_CALL_BYTES) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(ERRORS, code)

const toApiError = ({ code, message }: { code: string; message: string }): ApiError =>
  new ApiError(isErrorCode(code) ? code : 'control_plane_unavailable', message)
