// Prepares an edge request: resolves the box, acquires a slot, wakes the box or waits for it, and returns its tunnel.
import { z } from 'zod'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import { ADMISSION_ERRORS } from '../admission/refusal.ts'
import type { Tunnel } from '../agents/tunnel/types.ts'
import type { BoxRow } from '../db/schema.ts'
import { toSubject } from '../http/actor.ts'
import type { RouteInput, RouteSchemas } from '../http/route.ts'
import type { EdgeContext } from './context.ts'
import type { ConnectionKind } from './limits.ts'

/** How long a request waits for a box whose agent is reconnecting, or that is starting. */
const RECONNECT_WAIT_MS = 15_000
/** How long POST /exec waits for a box that it wakes. */
const WAKE_WAIT_MS = 90_000

/** The edge addresses a box by its name or its id (spec §1). */
export const boxParams = z.object({
  box: z.string().meta({ description: 'the name or the id of the box', param: { id: 'box' } }),
})

/** The error codes that every edge route may respond with. */
export const ACQUIRE_ERRORS = [
  'unauthorized',
  'token_expired',
  'not_found',
  'box_not_running',
  'rate_limited',
  'box_unreachable',
  'exec_failed',
] as const satisfies ErrorCode[]

/** The errors of a route that wakes a suspended box, which is refused like a wake of the control plane. */
export const WAKE_ERRORS = [...ACQUIRE_ERRORS, ...ADMISSION_ERRORS.wake] as const satisfies ErrorCode[]

/** What errors about the field cwd mean, for the OpenAPI document. */
export const INVALID_CWD =
  'cwd is not a directory, or the path or the query of the URL is not percent-encoded UTF-8.'
export const NO_BOX_OR_CWD =
  'There is no such box or directory cwd, or this credential may not access the box.'
export const CWD_DENIED = 'The box user may not enter the directory cwd.'

export type AcquiredBox = {
  box: BoxRow
  tunnel: Tunnel
  /**
   * Aborts when the client disconnects, and with an ApiError when its credential may no longer use the box, so that the
   * agent stops too.
   */
  signal: AbortSignal
}

export type AcquiredSlot = AcquiredBox & {
  /** Call when the client can resume the connection on the next agent: an upgrade of the agent then does not wait for it. */
  setResumable(): void
}

export type AcquireOptions = {
  /** Wake a suspended box. Default: false. */
  wakesBox?: boolean
  /** Which limits it counts against. Default: request. */
  kind?: ConnectionKind
}

/** These count as a session of the team status while they are open: a person or a program follows what a box does. */
const SESSIONS: readonly ConnectionKind[] = ['prompt-stream', 'attachment', 'terminal']

type AcquireInput = Omit<RouteInput<RouteSchemas>, 'params'> & { params: { box: string } }

/**
 * Holds one slot of the caller's key, of its user and workspace, and of the box until the response is closed.
 * @throws ApiError not_found, rate_limited, customer_session_limit, box_not_running (with `state`), box_unreachable; and the codes of a credential
 *   that may no longer use the box
 */
export async function acquireBox(
  context: EdgeContext,
  { actor, params, request, reply }: AcquireInput,
  options: AcquireOptions = {},
): Promise<AcquiredSlot> {
  const { wakesBox = false, kind = 'request' } = options
  const { boxes, pauseGate } = context
  const versionBefore = pauseGate.version
  let box = await boxes.resolve(actor, params.box)
  const terminalLimit = kind === 'terminal' ? await context.loadTerminalLimit(actor.workspaceId) : undefined
  const releaseSlots = await context.limiter.acquire(toSubject(actor), box.id, { kind, terminalLimit })
  const detach = SESSIONS.includes(kind) ? context.attachments.add(box.id, actor.userId) : undefined
  let isReleased = false
  let endResumable: (() => void) | undefined
  const release = () => {
    if (isReleased) return
    isReleased = true
    detach?.()
    endResumable?.()
    releaseSlots()
  }
  reply.raw.once('close', release)
  // The client disconnected before the listener was attached.
  if (reply.raw.destroyed) release()
  const { id } = box
  const { openRequest } = request
  if (openRequest === null) throw new Error('the request is not registered as open')
  await openRequest.addCheck((actor) => boxes.resolve(actor, id))
  const { signal } = openRequest
  // A pause that was being decided before the slot was acquired may have suspended the box since it was read.
  const pause = pauseGate.wait(box.id)
  if (pause !== undefined || pauseGate.version !== versionBefore) {
    await pause
    box = await boxes.resolve(actor, id)
  }
  const tunnel = await connectTunnel(context, box, actor, wakesBox, signal)
  const setResumable = () => {
    if (!isReleased) endResumable ??= context.limiter.setResumable(id)
  }
  return { box, tunnel, signal, setResumable }
}

async function connectTunnel(
  context: EdgeContext,
  box: BoxRow,
  actor: AcquireInput['actor'],
  wakesBox: boolean,
  signal: AbortSignal,
): Promise<Tunnel> {
  const shouldRun = box.desired_state === 'running'
  const state = box.observed_state
  const isConnected = context.tunnels.current(box.id) !== undefined
  // The machine may be switched off: nothing starts it.
  if (box.kind === 'machine' && shouldRun && state !== 'running' && !isConnected)
    throw new ApiError(
      'box_unreachable',
      `Box ${box.hostname} is an enrolled machine that is not connected. Check that the machine runs and that its agent can reach the coordinator.`,
    )
  if (!isConnected && (shouldRun || wakesBox)) await context.assertAvailable(box)
  if (shouldRun && (state === 'running' || state === 'degraded'))
    return context.tunnels.wait(box.id, RECONNECT_WAIT_MS, signal)
  if (state === 'provision_failed' || (!shouldRun && !wakesBox)) throw createNotRunningError(box)
  if (!shouldRun) await context.boxes.wake(actor, box.id)
  // Every route waits for a starting box; only a route that wakes boxes waits for a whole start.
  await context.waitUntilRunning(box.id, wakesBox ? WAKE_WAIT_MS : RECONNECT_WAIT_MS, signal)
  return context.tunnels.wait(box.id, RECONNECT_WAIT_MS, signal)
}

export const createNotRunningError = (box: BoxRow): ApiError =>
  new ApiError('box_not_running', explainNotRunning(box), { fields: { state: box.observed_state } })

/** Why the box cannot serve the request, and what to do. */
function explainNotRunning({ hostname, observed_state: observed }: BoxRow): string {
  if (observed === 'provision_failed')
    return `Box ${hostname} could not be provisioned. Delete it and create another.`
  const isSuspended = observed === 'suspended' || observed === 'deep_sleep'
  const problem = isSuspended ? 'is suspended' : 'is being suspended'
  return `Box ${hostname} ${problem}. Wake it with \`box wake ${hostname}\`.`
}
