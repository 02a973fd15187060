// Waiting for a box to be usable: for the requests that wake it.
import { ApiError } from '../../shared/errors.ts'
import type { Db } from '../db/open.ts'
import type { Tunnel, Tunnels } from '../tunnel/types.ts'
import { boxById } from './store.ts'

export type WaitUntilRunning = (boxId: string, ms: number, signal?: AbortSignal) => Promise<Tunnel>

/**
 * The returned function resolves with the box's tunnel once the box is running and connected. Rejects with
 * box_unreachable after `ms`, with box_failed when it cannot be provisioned, with not_found when it is deleted, and
 * with the signal's reason.
 */
export function createWaiter(options: {
  db: Db
  tunnels: Tunnels
  onChange(listener: (boxId: string) => void): () => void
}): WaitUntilRunning {
  const { db, tunnels, onChange } = options

  return async (boxId, ms, signal) => {
    const deadline = performance.now() + ms
    const changes = followBox(onChange, boxId)
    try {
      for (;;) {
        signal?.throwIfAborted()
        const change = changes.next()
        const box = await boxById(db, boxId)
        if (!box || box.desired_state === 'terminated') throw new ApiError('not_found')
        if (box.observed_state === 'provision_failed') throw new ApiError('box_failed')
        const leftMs = deadline - performance.now()
        if (box.observed_state === 'running') return await tunnels.wait(boxId, Math.max(0, leftMs), signal)
        if (leftMs <= 0) throw new ApiError('box_unreachable', 'The box did not wake in time.')
        await within(change, leftMs, signal)
      }
    } finally {
      changes.end()
    }
  }
}

/** `next()` settles at the first change after it was called. */
function followBox(onChange: (listener: (boxId: string) => void) => () => void, boxId: string) {
  let wake: () => void = () => undefined
  const end = onChange((changed) => {
    if (changed === boxId) wake()
  })
  const next = () =>
    new Promise<void>((resolve) => {
      wake = resolve
    })
  return { next, end }
}

/** Settles with the promise, after `ms`, or when the signal aborts: whichever is first. */
async function within(promise: Promise<void>, ms: number, signal: AbortSignal | undefined): Promise<void> {
  let stop: () => void = () => undefined
  const ended = new Promise<void>((resolve) => {
    stop = resolve
  })
  const timer = setTimeout(stop, ms)
  signal?.addEventListener('abort', stop, { once: true })
  try {
    await Promise.race([promise, ended])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', stop)
  }
}
