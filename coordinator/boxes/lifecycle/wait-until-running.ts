// Waits until a box is running and connected, for edge requests to a box that is still starting.
import { ApiError } from '../../../shared/errors.ts'
import type { Tunnel, Tunnels } from '../../agents/tunnel/types.ts'
import type { Db } from '../../db/open.ts'
import { findBox } from '../store/boxes.ts'
import { findJob } from '../store/jobs.ts'
import type { Reconciler } from './reconciler.ts'

export type WaitUntilRunning = (boxId: string, ms: number, signal?: AbortSignal) => Promise<Tunnel>

/**
 * The returned function resolves with the box's tunnel once the box is running and connected. It rejects with
 * box_unreachable after `ms`, with box_failed when provisioning fails, with not_found when the box is deleted, and
 * with the signal's reason when aborted.
 */
export function createWaitUntilRunning(options: {
  db: Db
  tunnels: Tunnels
  onChange: Reconciler['onChange']
}): WaitUntilRunning {
  const { db, tunnels, onChange } = options

  return async (boxId, ms, signal) => {
    const deadline = performance.now() + ms
    const changes = subscribeToBox(onChange, boxId)
    try {
      for (;;) {
        signal?.throwIfAborted()
        // Subscribe before reading, so a change in between is not missed.
        const change = changes.next()
        const box = await findBox(db, boxId)
        if (!box || box.desired_state === 'terminated')
          throw new ApiError('not_found', 'The box has been deleted. Use another box.')
        if (box.observed_state === 'provision_failed') throw new ApiError('box_failed')
        const remainingMs = deadline - performance.now()
        if (box.observed_state === 'running')
          return await tunnels.wait(boxId, Math.max(0, remainingMs), signal)
        if (remainingMs <= 0) throw new ApiError('box_unreachable', await explainTimeout(db, boxId))
        await raceWithTimeout(change, remainingMs, signal)
      }
    } finally {
      changes.unsubscribe()
    }
  }
}

async function explainTimeout(db: Db, boxId: string): Promise<string> {
  const problem = (await findJob(db, boxId))?.last_error ?? null
  return problem === null
    ? 'The box did not start in time. Try again.'
    : `The box did not start in time. The last attempt failed: ${problem}`
}

/** `next()` resolves at the first change after the call, and when a change may have been missed. */
function subscribeToBox(onChange: Reconciler['onChange'], boxId: string) {
  let resolveNext: () => void = () => undefined
  const unsubscribe = onChange(
    (changedId) => {
      if (changedId === boxId) resolveNext()
    },
    { onGap: () => resolveNext() },
  )
  const next = () =>
    new Promise<void>((resolve) => {
      resolveNext = resolve
    })
  return { next, unsubscribe }
}

/** Resolves when the promise resolves, after `ms`, or when the signal aborts, whichever is first. */
async function raceWithTimeout(
  promise: Promise<void>,
  ms: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  // It may have been aborted while the box was read.
  if (signal?.aborted) return
  const stopped = Promise.withResolvers<void>()
  const timer = setTimeout(stopped.resolve, ms)
  const onAbort = () => stopped.resolve()
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    await Promise.race([promise, stopped.promise])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}
