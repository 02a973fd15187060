// The WebSocket an agent opens: checked before the upgrade, so that a refusal is an HTTP answer with a reason.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import {
  AGENT_VERSION_HEADER,
  INSTANCE_HEADER,
  OLDEST_PROTOCOL_VERSION,
  PROTOCOL_HEADER,
  PROTOCOL_VERSION,
  RECONNECT_AFTER_HEADER,
} from '../../shared/protocol.ts'
import type { AttemptLimit } from './attempt-limit.ts'
import { type Authenticate, authenticatedBox, headerValue } from './credentials.ts'
import { type Refusal, refuse } from './refuse.ts'
import type { Registry } from './registry.ts'
import { openSession, type Session, type SessionOptions } from './session.ts'
import { createWebSocketServer } from './websocket-server.ts'

export type AcceptorOptions = Pick<SessionOptions, 'liveness' | 'random'> & {
  log: Logger
  authenticate: Authenticate
  registry: Registry
  attempts: AttemptLimit
  /** How long an incumbent has to show that it lives before another agent may take its box. */
  incumbentAnswerMs: number
  /** How long a new connection has to speak HTTP/2. */
  helloMs: number
  /** While true, agents are sent away. */
  draining(): boolean
  reconnectAfterMs(): number
  /** Called when the connection is there, and when it has become the tunnel of its box. */
  onOpen(session: Session): void
  onActive(session: Session): void
}

/** The largest message taken from an agent: its HTTP/2 frames are cut to 256 KiB, and a few travel together. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024
const PRINTABLE = /^[\x21-\x7e]{1,64}$/

export function createAcceptor(options: AcceptorOptions) {
  const { log, registry } = options
  const server = createWebSocketServer(MAX_MESSAGE_BYTES)

  async function accept(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const onError = (error: Error) => log.debug({ err: error }, 'agent left before the upgrade')
    socket.on('error', onError)
    const hello = await inspect(request, options)
    if ('status' in hello) {
      log.warn({ code: hello.code, status: hello.status }, 'agent refused')
      return refuse(socket, hello)
    }
    if (socket.destroyed) return
    server.handleUpgrade(request, socket, head, (ws) => {
      socket.off('error', onError)
      const { liveness, random } = options
      const identity = { ...hello, generation: registry.nextGeneration() }
      const session = openSession({ ws, socket: socket as Socket, identity, liveness, random })
      options.onOpen(session)
      greet(session)
    })
  }

  function greet(session: Session): void {
    const { boxId, generation } = session
    const timer = setTimeout(() => session.destroy('the agent speaks no HTTP/2'), options.helloMs)
    void session.ended.then((reason) => {
      clearTimeout(timer)
      registry.remove(session, reason)
      log.info({ boxId, generation, reason }, 'tunnel ended')
    })
    session.ready.then(
      () => {
        clearTimeout(timer)
        if (!registry.activate(session))
          return session.destroy('a newer connection of the box is there already')
        log.info({ boxId, generation, agentVersion: session.agentVersion }, 'tunnel up')
        options.onActive(session)
      },
      () => undefined,
    )
  }

  return {
    handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
      accept(request, socket, head).catch((error: unknown) => {
        log.error({ err: error }, 'a tunnel could not be accepted')
        refuse(socket, { status: 503, code: 'control_plane_unavailable', message: 'Try again.' })
      })
    },
    close: () => server.close(),
  }
}

/** Who the agent is, or why it may not connect. */
async function inspect(
  request: IncomingMessage,
  options: AcceptorOptions,
): Promise<{ boxId: string; instanceId: string; agentVersion: string } | Refusal> {
  if (options.draining()) {
    const headers = { [RECONNECT_AFTER_HEADER]: String(options.reconnectAfterMs()) }
    return {
      status: 503,
      code: 'control_plane_unavailable',
      message: 'The coordinator is stopping.',
      headers,
    }
  }
  const boxId = await authenticatedBox(request, options.authenticate)
  if (boxId === null) return { status: 401, code: 'unauthorized', message: 'No box has this id and token.' }
  const waitMs = options.attempts.attempt(boxId)
  if (waitMs > 0) {
    const headers = { [RECONNECT_AFTER_HEADER]: String(waitMs) }
    return { status: 429, code: 'rate_limited', message: 'This box connects too often.', headers }
  }
  if (!isSpoken(headerValue(request, PROTOCOL_HEADER))) {
    const versions = `${OLDEST_PROTOCOL_VERSION} to ${PROTOCOL_VERSION}`
    const message = `This coordinator speaks the versions ${versions} of the agent protocol.`
    return { status: 426, code: 'agent_protocol_unsupported', message }
  }
  const instanceId = headerValue(request, INSTANCE_HEADER) ?? ''
  const agentVersion = headerValue(request, AGENT_VERSION_HEADER) ?? ''
  if (!PRINTABLE.test(instanceId) || !PRINTABLE.test(agentVersion)) {
    return {
      status: 400,
      code: 'bad_request',
      message: 'The instance or agent version is missing or not printable.',
    }
  }
  const incumbent = options.registry.get(boxId)
  if (incumbent !== undefined && incumbent.instanceId !== instanceId) {
    if (await incumbent.answers(options.incumbentAnswerMs)) {
      return {
        status: 409,
        code: 'box_already_connected',
        message: 'Another agent with this token is connected.',
      }
    }
    incumbent.destroy('did not answer when another agent came')
  }
  return { boxId, instanceId, agentVersion }
}

function isSpoken(version: string | null | undefined): boolean {
  const number = /^[1-9]\d{0,8}$/.test(version ?? '') ? Number(version) : 0
  return number >= OLDEST_PROTOCOL_VERSION && number <= PROTOCOL_VERSION
}
