// Waits until a queued prompt has started.
import { setTimeout as sleep } from 'node:timers/promises'
import type { PromptList, PromptStatus, QueuedPrompt, Run } from '../../shared/api/prompts.ts'
import { backoffDelay, noJitter } from '../../shared/backoff.ts'
import type { EdgeClient } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

/** Polls, because a stream would count among the four streams of the API key. */
const INTERVAL_MS = 1000
const MAX_INTERVAL_MS = 30_000
const BACKOFF = { baseMs: INTERVAL_MS, maxMs: 5000 }
/** A started prompt becomes a run in less time. */
const START_ATTEMPTS = 5

export type QueueOptions = {
  edge: EdgeClient
  queued: QueuedPrompt
  signal: AbortSignal
  /** Called when the position has changed. `active`: the run in progress, if any. */
  onPosition(queued: QueuedPrompt, active: Run | null): Promise<void>
  onOutage(reason: string): void
  /** Called when the box is not running. False: retry. */
  isBoxStopped(): Promise<boolean>
}

/** Returns the run; null if the prompt was removed from the queue. @throws CliError; the signal's reason */
export async function waitInQueue(options: QueueOptions): Promise<Run | null> {
  const { edge, queued, signal, onPosition, onOutage, isBoxStopped } = options
  let position = queued.position
  let missing = 0
  for (let failures = 0; ; ) {
    const backoffMs = backoffDelay(failures, BACKOFF, noJitter)
    await wait(Math.max(backoffMs, getIntervalMs(position)), signal)
    try {
      const list = await edge.requestJson<PromptList>('GET', '/prompts')
      failures = 0
      const current = list.queued.find(({ id }) => id === queued.id)
      if (current === undefined) {
        const run = list.runs.find(({ id }) => id === queued.id) ?? (await findRun(edge, queued.id))
        missing += 1
        if (run !== null || missing === START_ATTEMPTS) return run
      } else if (current.position !== position) {
        position = current.position
        await onPosition(current, list.active)
      }
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof CliError) || !(await isTemporary(error, isBoxStopped))) throw error
      if (failures === 0) onOutage(error.message)
      failures = Math.min(failures + 1, 10)
    }
  }
}

/** A box accepts 20 requests per second: the clients of a long queue must not use them up. */
export const getIntervalMs = (position: number): number => Math.min(MAX_INTERVAL_MS, position * INTERVAL_MS)

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch((error) => {
    throw signal.aborted ? signal.reason : error
  })
}

async function findRun(edge: EdgeClient, id: string): Promise<Run | null> {
  try {
    return (await edge.requestJson<PromptStatus>('GET', `/prompts/${encodeURIComponent(id)}`)).run
  } catch (error) {
    if (error instanceof CliError && error.code === 'not_found') return null
    throw error
  }
}

/** An error without a code comes from a proxy, for example while the coordinator restarts. */
async function isTemporary(error: CliError, isBoxStopped: () => Promise<boolean>): Promise<boolean> {
  if (error.code === 'box_not_running') return !(await isBoxStopped())
  return error.exitCode === EXIT.unreachable || error.code === null || error.code === 'rate_limited'
}
