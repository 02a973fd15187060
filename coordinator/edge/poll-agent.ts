// Long-polls the agent of a box for a stream, over as many tunnels as needed: the agent may restart meanwhile.
import { setTimeout as sleep } from 'node:timers/promises'
import { MAX_POLL_MS } from '../../shared/api/prompts.ts'
import type { Actor } from '../http/actor.ts'
import { type AcquiredBox, createNotRunningError } from './acquire-box.ts'
import type { EdgeContext } from './context.ts'
import { isUnreachable } from './repeat-request.ts'
import { type AgentRequest, requestAgent } from './request-agent.ts'
import type { AgentResponse } from './response-parser.ts'

export type PollOptions = {
  /** How long the box may be unreachable. Default: 60 s. */
  unreachableMs?: number
  /** How often the state of an unreachable box is read. Default: 2 s. */
  stateCheckMs?: number
}

/** Added to the time for which the agent waits. */
const RESPONSE_GRACE_MS = 15_000
/** A closed tunnel may still be registered for a moment. */
const RETRY_DELAY_MS = 100
/** Bounds the rate of requests. Events that follow within this time are sent together. */
const MIN_INTERVAL_MS = 10
/** The agent has to wait for an event, instead of responding without one. */
const EARLY_RESPONSE_DELAY_MS = 1_000

export type AgentPoller = {
  /**
   * @throws ApiError the agent's error response, box_unreachable when the box has been unreachable for too long,
   *   box_not_running, exec_failed for an invalid response; and the reason of `signal`
   */
  poll(request: AgentRequest, signal: AbortSignal): Promise<AgentResponse>
  /** Await it after a response without events. */
  delayAfterEmpty(signal: AbortSignal): Promise<void>
}

export function createAgentPoller(
  context: Pick<EdgeContext, 'responseParser' | 'tunnels' | 'boxes'>,
  { box, tunnel }: Pick<AcquiredBox, 'box' | 'tunnel'>,
  actor: Actor,
  { unreachableMs = 60_000, stateCheckMs = 2_000 }: PollOptions = {},
): AgentPoller {
  let current = tunnel
  let lastRequestAt = Number.NEGATIVE_INFINITY

  /** Throws when the box does not run any more. */
  async function assertRunning(): Promise<void> {
    const row = await context.boxes.resolve(actor, box.id)
    if (row.desired_state !== 'running') throw createNotRunningError(row)
  }

  async function reconnect(deadline: number, signal: AbortSignal): Promise<void> {
    for (;;) {
      await assertRunning()
      const remainingMs = deadline - performance.now()
      try {
        current = await context.tunnels.wait(box.id, Math.max(0, Math.min(remainingMs, stateCheckMs)), signal)
        return
      } catch (error) {
        if (!isUnreachable(error) || remainingMs <= stateCheckMs) throw error
      }
    }
  }

  return {
    async poll(request, signal) {
      let deadline: number | undefined
      for (;;) {
        await wait(lastRequestAt + MIN_INTERVAL_MS - performance.now(), signal)
        lastRequestAt = performance.now()
        try {
          const timeoutMs = MAX_POLL_MS + RESPONSE_GRACE_MS
          return await requestAgent(context, { tunnel: current, signal }, { timeoutMs, ...request })
        } catch (error) {
          signal.throwIfAborted()
          if (!isUnreachable(error)) throw error
          deadline ??= performance.now() + unreachableMs
          if (performance.now() >= deadline) throw error
        }
        await wait(RETRY_DELAY_MS, signal)
        await reconnect(deadline, signal)
      }
    },
    delayAfterEmpty: (signal) => wait(lastRequestAt + EARLY_RESPONSE_DELAY_MS - performance.now(), signal),
  }
}

/** Rejects with the reason of the signal. */
async function wait(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  if (ms > 0) await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted())
}
