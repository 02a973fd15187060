// The way into a box, the same for every edge route: find it, take a slot, wake it or wait for it, get its tunnel.
import { z } from 'zod'
import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import type { BoxRow } from '../db/schema.ts'
import type { RouteInput, RouteSchemas } from '../http/route.ts'
import type { Tunnel } from '../tunnel/types.ts'
import type { EdgeContext } from './context.ts'

/** How long a request waits for a box whose agent is reconnecting, or that is just starting. */
const RECONNECT_WAIT_MS = 15_000
/** How long POST /exec waits for a box that it wakes. */
const WAKE_WAIT_MS = 90_000

/** The box as the edge addresses it (spec §1): by its name or its id. */
export const boxParams = z.object({ box: z.string() })

/** The codes that any edge route may answer with. */
export const ACQUIRE_ERRORS = [
  'unauthorized',
  'token_expired',
  'not_found',
  'box_not_running',
  'rate_limited',
  'box_unreachable',
  'exec_failed',
] as const satisfies ErrorCode[]

export type AcquiredBox = {
  box: BoxRow
  tunnel: Tunnel
  /** Aborted when the client is gone, so that the box stops working for nobody. */
  signal: AbortSignal
}

export type AcquireOptions = {
  wakesBox?: boolean
  /** It counts against the token's streams, too. */
  isStream?: boolean
}

type VisitInput = Omit<RouteInput<RouteSchemas>, 'params'> & { params: { box: string } }

/**
 * Holds one slot of the caller's key and of the box until the answer has ended, however it ends.
 * Throws not_found, rate_limited, box_not_running (with `state`) or box_unreachable.
 */
export async function acquireBox(
  context: EdgeContext,
  { actor, params, reply }: VisitInput,
  { wakesBox: wakes = false, isStream: stream = false }: AcquireOptions = {},
): Promise<AcquiredBox> {
  const box = await context.boxes.resolve(actor, params.box)
  const release = await context.limiter.acquire(actor.keyId, box.id, { stream })
  const gone = new AbortController()
  reply.raw.once('close', () => {
    release()
    if (!reply.raw.writableFinished) gone.abort()
  })
  // The client may have left while we looked: then 'close' has come and gone.
  if (reply.raw.destroyed) {
    release()
    gone.abort()
  }
  return { box, tunnel: await reach(context, box, actor, wakes, gone.signal), signal: gone.signal }
}

async function reach(
  context: EdgeContext,
  box: BoxRow,
  actor: VisitInput['actor'],
  wakes: boolean,
  signal: AbortSignal,
): Promise<Tunnel> {
  const wanted = box.desired_state === 'running'
  const state = box.observed_state
  if (wanted && (state === 'running' || state === 'degraded'))
    return context.tunnels.current(box.id) ?? context.tunnels.wait(box.id, RECONNECT_WAIT_MS, signal)
  if (state === 'provision_failed' || (!wanted && !wakes))
    throw new ApiError('box_not_running', `The box is ${state}.`, { fields: { state } })
  if (!wanted) await context.boxes.wake(actor, box.id)
  // A box on its way to running is waited for; only what wakes a box waits as long as that takes.
  await context.waitUntilRunning(box.id, wakes ? WAKE_WAIT_MS : RECONNECT_WAIT_MS, signal)
  return context.tunnels.wait(box.id, RECONNECT_WAIT_MS, signal)
}
