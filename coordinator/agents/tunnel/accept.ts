// Accepts tunnels: checks an agent before the WebSocket upgrade, so that a rejection is an HTTP response with a reason.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import type { Clock } from '../../../shared/clock.ts'
import { NONCE, toProofText } from '../../../shared/coordinator-proof.ts'
import { ApiError } from '../../../shared/errors.ts'
import {
  AGENT_VERSION_HEADER,
  BOX_DELETED,
  BOX_HEADER,
  FAILED_BUILD_HEADER,
  INSTANCE_HEADER,
  LINEAGE_HEADER,
  LINEAGE_ID,
  LINEAGE_LENGTH,
  NONCE_HEADER,
  PLATFORM_HEADER,
  PREVIOUS_PROTOCOL_VERSION,
  PROOF_HEADER,
  PROTOCOL_HEADER,
  PROTOCOL_VERSION,
  RECONNECT_AFTER_HEADER,
} from '../../../shared/protocol.ts'
import { MAX_MESSAGE_BYTES } from '../../../shared/tunnel-messages.ts'
import { isUuid } from '../../../shared/uuid.ts'
import { createLineLimiter } from '../../base/log/line-limiter.ts'
import { createProxyCheck, readClientAddress, toSubject } from '../../http/client-address.ts'
import type { BoxLimits } from './box-limits.ts'
import {
  type Authenticate,
  type AuthenticatedBox,
  authenticateBox,
  headerValue,
  type OnAuthenticated,
  readCredentials,
  WRONG_CREDENTIALS,
} from './credentials.ts'
import type { Registry } from './registry.ts'
import { type Rejection, rejectUpgrade } from './reject-upgrade.ts'
import { type Identity, openSession, type Session, type SessionOptions } from './session.ts'
import type { MachineAgents } from './types.ts'
import { createWebSocketServer } from './websocket-server.ts'

export type AcceptorOptions = Pick<SessionOptions, 'liveness' | 'random' | 'observeRequest'> & {
  log: Logger
  clock: Clock
  /** IP addresses and ranges of the proxies whose X-Forwarded-For has the address of the agent. Default: none. */
  trustedProxies?: readonly string[] | undefined
  authenticate: Authenticate
  /** Default: no agent belongs to an enrolled machine. */
  machines?: MachineAgents | undefined
  /** Signs the proof of a response (shared/coordinator-proof.ts), in base64. Default: responses have no proof. */
  sign?: ((text: string) => Promise<string>) | undefined
  registry: Registry
  limits: BoxLimits
  /** Versions of the protocol. Default: this one and the previous one. */
  acceptedVersions?: readonly number[] | undefined
  /** How long the current session may take to show activity before another agent replaces it. */
  probeTimeoutMs: number
  /** How long an agent may take to respond on a new connection. */
  handshakeTimeoutMs: number
  /** While true, agents are rejected with a reconnect delay. */
  isDraining(): boolean
  reconnectAfterMs(): number
  onAuthenticated?: OnAuthenticated | undefined
  /** Default: no other coordinator uses the database. */
  others?: OtherCoordinators | undefined
  /** Called when the connection is open, and when it has become its box's tunnel. */
  onOpen(session: Session): void
  onActive(session: Session): void
  /** Called with the error code when an agent is rejected. */
  onReject?: ((code: string) => void) | undefined
}

/** The agents at other coordinators. */
export type OtherCoordinators = {
  /** See RemoteTunnels. */
  hasRival(boxId: string, instanceId: string): Promise<boolean>
  /** Claims the tunnel for this coordinator. Resolves to false when the tunnel must not become that of its box. */
  claim(session: Session): Promise<boolean>
}

const PRINTABLE = /^[\x21-\x7e]{1,64}$/

export function createAcceptor(options: AcceptorOptions) {
  const { log, registry } = options
  const server = createWebSocketServer(MAX_MESSAGE_BYTES)
  const limitLines = createLineLimiter(options.clock)
  const isProxy = createProxyCheck(options.trustedProxies ?? [])
  const proofs = new WeakMap<IncomingMessage, string>()
  server.on('headers', (headers, request) => {
    const proof = proofs.get(request)
    if (proof !== undefined) headers.push(`${PROOF_HEADER}: ${proof}`)
  })

  /** Undefined: the agent has not requested a proof. */
  async function prove(request: IncomingMessage, status: number, code: string): Promise<string | undefined> {
    const nonce = headerValue(request, NONCE_HEADER)
    const boxId = headerValue(request, BOX_HEADER)
    if (nonce === undefined || boxId === undefined || !NONCE.test(nonce) || !isUuid(boxId)) return undefined
    return options.sign?.(toProofText({ boxId, nonce, status, code }))
  }

  /** Agents may reconnect for days with the same rejection, and anyone may try tokens: these lines are limited. */
  function logRejection(request: IncomingMessage, { code, status, message: reason }: Rejection): void {
    const address = toSubject(readClientAddress(request, isProxy))
    const line = limitLines(`${code} ${address}`)
    if (line === null) return
    const level = options.isDraining() ? 'debug' : 'warn'
    log[level]({ code, status, reason, address, ...line }, 'agent rejected')
  }

  async function accept(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const onError = (err: Error) => log.debug({ err }, 'agent disconnected before the upgrade')
    socket.on('error', onError)
    const agent = await inspectRequest(request, options)
    if ('status' in agent) {
      logRejection(request, agent)
      options.onReject?.(agent.code)
      const proof = await prove(request, agent.status, agent.code)
      const headers = { ...agent.headers, ...(proof !== undefined && { [PROOF_HEADER]: proof }) }
      return rejectUpgrade(socket, { ...agent, headers })
    }
    const proof = await prove(request, 101, '')
    if (proof !== undefined) proofs.set(request, proof)
    if (socket.destroyed) return
    options.onAuthenticated?.(socket, agent, 'tunnel')
    server.handleUpgrade(request, socket, head, (ws) => {
      socket.off('error', onError)
      const { liveness, random, limits, observeRequest } = options
      const identity = { ...agent, generation: registry.nextGeneration() }
      const session = openSession({
        ws,
        socket: socket as Socket,
        identity,
        liveness,
        random,
        limits,
        observeRequest,
      })
      options.onOpen(session)
      activateWhenReady(session)
    })
  }

  function activateWhenReady(session: Session): void {
    const { boxId, generation } = session
    const timer = setTimeout(() => session.destroy('the agent did not respond'), options.handshakeTimeoutMs)
    void session.closed.then((reason) => {
      clearTimeout(timer)
      registry.remove(session, reason)
      log.info({ boxId, generation, reason }, 'agent disconnected')
    })
    const activate = () => {
      // The connection may have closed since the response of the agent.
      if (session.retiring.aborted) return
      if (!registry.activate(session)) return session.destroy('a newer connection exists')
      log.info({ boxId, generation, agentVersion: session.agentVersion }, 'agent connected')
      options.onActive(session)
    }
    session.ready.then(
      () => {
        clearTimeout(timer)
        if (options.others === undefined) activate()
        else void claim(options.others, session).then((isClaimed) => isClaimed && activate())
      },
      () => undefined,
    )
  }

  async function claim(others: OtherCoordinators, session: Session): Promise<boolean> {
    try {
      if (await others.claim(session)) return true
      session.destroy('the box is connected to another coordinator')
    } catch (err) {
      log.error({ err, boxId: session.boxId }, 'failed to claim the tunnel of a box')
      session.destroy('the tunnel could not be claimed')
    }
    return false
  }

  return {
    handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
      accept(request, socket, head).catch((err: unknown) => {
        if (err instanceof ApiError) {
          logRejection(request, err)
          options.onReject?.(err.code)
          return rejectUpgrade(socket, err)
        }
        const line = limitLines('failure')
        if (line !== null) log.error({ err, ...line }, 'failed to accept a tunnel')
        rejectUpgrade(socket, {
          status: 503,
          code: 'control_plane_unavailable',
          message: 'The coordinator failed to accept the tunnel. Try again.',
        })
      })
    },
    close: () => server.close(),
  }
}

const ALREADY_CONNECTED: Rejection = {
  status: 409,
  code: 'box_already_connected',
  message:
    'Another agent with this token is connected. Stop that agent first. If this disk is a copy of the disk of another machine, uninstall the agent here, then enroll this machine as a new box.',
}

/** The agent's identity, or why it may not connect. */
async function inspectRequest(
  request: IncomingMessage,
  options: AcceptorOptions,
): Promise<(Omit<Identity, 'generation'> & AuthenticatedBox) | Rejection> {
  if (options.isDraining()) {
    const headers = { [RECONNECT_AFTER_HEADER]: String(options.reconnectAfterMs()) }
    return {
      status: 503,
      code: 'control_plane_unavailable',
      message: `The coordinator is stopping. Reconnect after ${RECONNECT_AFTER_HEADER} milliseconds.`,
      headers,
    }
  }
  const box = await authenticateBox(request, options.authenticate)
  if (box === null) return explainWrongCredentials(request, options.machines)
  const { boxId } = box
  const waitMs = options.limits.attempt(boxId)
  if (waitMs > 0) {
    const headers = { [RECONNECT_AFTER_HEADER]: String(waitMs) }
    return {
      status: 429,
      code: 'rate_limited',
      message: `This box connects too often. Reconnect after ${RECONNECT_AFTER_HEADER} milliseconds.`,
      headers,
    }
  }
  const { acceptedVersions = [PROTOCOL_VERSION, PREVIOUS_PROTOCOL_VERSION] } = options
  const protocolVersion = acceptedVersions.find(
    (version) => headerValue(request, PROTOCOL_HEADER) === String(version),
  )
  if (protocolVersion === undefined) {
    const message = `The header ${PROTOCOL_HEADER} must be ${acceptedVersions.join(' or ')}. Update the agent or the coordinator.`
    const headers = { [PROTOCOL_HEADER]: String(PROTOCOL_VERSION) }
    return { status: 426, code: 'agent_protocol_unsupported', message, headers }
  }
  const instanceId = headerValue(request, INSTANCE_HEADER) ?? ''
  const agentVersion = headerValue(request, AGENT_VERSION_HEADER) ?? ''
  if (!PRINTABLE.test(instanceId) || !PRINTABLE.test(agentVersion)) {
    return {
      status: 400,
      code: 'bad_request',
      message: `The headers ${INSTANCE_HEADER} and ${AGENT_VERSION_HEADER} must be 1 to 64 printable ASCII characters without spaces.`,
    }
  }
  const failedBuild = headerValue(request, FAILED_BUILD_HEADER) ?? null
  const platform = headerValue(request, PLATFORM_HEADER) ?? null
  if ([failedBuild, platform].some((value) => value !== null && !PRINTABLE.test(value))) {
    const message = `The headers ${FAILED_BUILD_HEADER} and ${PLATFORM_HEADER} must be 1 to 64 printable ASCII characters without spaces.`
    return { status: 400, code: 'bad_request', message }
  }
  const current = options.registry.get(boxId)
  if (current !== undefined && current.instanceId !== instanceId) {
    if (await current.isResponsive(options.probeTimeoutMs)) return ALREADY_CONNECTED
    current.destroy('unresponsive while another agent connected')
    // The token may have been replaced during the probe.
    if ((await authenticateBox(request, options.authenticate)) === null)
      return { status: 401, code: 'unauthorized', message: WRONG_CREDENTIALS }
  }
  if (current === undefined && (await options.others?.hasRival(boxId, instanceId))) return ALREADY_CONNECTED
  const rejection = await checkLineage(request, boxId, options.machines)
  return rejection ?? { ...box, instanceId, agentVersion, protocolVersion, platform, failedBuild }
}

async function explainWrongCredentials(
  request: IncomingMessage,
  machines: MachineAgents | undefined,
): Promise<Rejection> {
  const credentials = readCredentials(request)
  const isDeleted =
    credentials !== null && (await machines?.isDeleted(credentials.boxId, credentials.tokenHash))
  if (!isDeleted) return { status: 401, code: 'unauthorized', message: WRONG_CREDENTIALS }
  return {
    status: 410,
    code: BOX_DELETED,
    message: 'The box of this machine has been deleted. The agent uninstalls itself.',
  }
}

/** null: the agent may connect. */
async function checkLineage(
  request: IncomingMessage,
  boxId: string,
  machines: MachineAgents | undefined,
): Promise<Rejection | null> {
  if (machines === undefined) return null
  const ids = headerValue(request, LINEAGE_HEADER)?.split(',') ?? null
  const isValid = ids === null || (ids.length <= LINEAGE_LENGTH && ids.every((id) => LINEAGE_ID.test(id)))
  const result = isValid ? await machines.admit(boxId, ids) : 'no_lineage'
  if (result === 'accepted') return null
  if (result === 'no_lineage') {
    const message = `The header ${LINEAGE_HEADER} must have 1 to ${LINEAGE_LENGTH} ids of 16 hexadecimal digits.`
    return { status: 400, code: 'bad_request', message }
  }
  return { status: 409, code: 'machine_cloned', message: explainClone(result.clonedFrom) }
}

const explainClone = (name: string): string =>
  `Another machine has connected as box ${name} since this one did: this disk is a copy of its disk, or an older state of it. Uninstall the agent here, then enroll this machine as a new box.`
