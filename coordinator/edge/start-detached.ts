// POST /exec with detached true (spec §4.14): a start that a lost connection neither loses nor doubles.
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecRequest } from '../../shared/api/exec.ts'
import { type AgentStartRequest, execStarted } from '../../shared/api/processes.ts'
import { ApiError } from '../../shared/errors.ts'
import type { TrackedCommand } from '../commands/command-tracker.ts'
import type { AcquiredBox } from './acquire-box.ts'
import { readAgentResponse } from './agent-response.ts'
import { boxEnv } from './box-env.ts'
import type { EdgeContext } from './context.ts'
import { withDeadline } from './deadline.ts'

/** For all attempts together. */
const START_MS = 30_000
/** A connection that has just died may still be listed for a moment. */
const AGAIN_MS = 100

/**
 * Asks the box to start it, and again under the same id when the tunnel died before the answer came: an agent starts an
 * id once, however often it is asked.
 * @param ms for all attempts together
 * @returns the bytes of exec.started. Rejects with box_unreachable, which names the id: it may have been started.
 */
export async function startDetached(
  { tunnels }: Pick<EdgeContext, 'tunnels'>,
  { box, tunnel, signal }: AcquiredBox,
  request: ExecRequest,
  { record, acceptResponse }: TrackedCommand,
  ms: number = START_MS,
): Promise<Buffer> {
  const processId = record.commandId
  const start: AgentStartRequest = { ...request, detached: true, processId, boxEnv: boxEnv(box), record }
  const body = Buffer.from(JSON.stringify(start))
  const headers = { 'content-type': 'application/json' }

  async function attempt(on: AcquiredBox['tunnel'], signal: AbortSignal): Promise<Buffer> {
    const response = await on.request({ method: 'POST', path: '/exec', headers, body, signal })
    return readAgentResponse(response, execStarted, (answer) => {
      if (answer.processId !== processId)
        throw new ApiError('exec_failed', 'The box answered about another process.')
      acceptResponse(answer)
    })
  }

  const tunnelDied = (error: unknown) => error instanceof ApiError && error.code === 'box_unreachable'
  const until = performance.now() + ms
  try {
    return await withDeadline(ms, signal, async (inTime) => {
      for (let current = tunnel; ; ) {
        try {
          return await attempt(current, inTime)
        } catch (error) {
          inTime.throwIfAborted()
          if (!tunnelDied(error)) throw error
        }
        await sleep(AGAIN_MS, undefined, { signal: inTime }).catch(() => inTime.throwIfAborted())
        current = await tunnels.wait(box.id, until - performance.now(), inTime)
      }
    })
  } catch (error) {
    if (!tunnelDied(error)) throw error
    throw new ApiError(
      'box_unreachable',
      `The box did not answer in time. It may have started the command, as ${processId}: GET /exec tells.`,
      { cause: error },
    )
  }
}
