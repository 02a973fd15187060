// Opens everything that prompts consist of, on detached processes of their own, and closes it in the reverse order.
import { join } from 'node:path'
import { type DetachedOptions, openDetachedProcesses } from '../exec/detached/processes.ts'
import { startWallTimer } from '../running-clock.ts'
import { createPrompts, type PromptsOptions } from './prompts.ts'
import { providers } from './providers/providers.ts'
import type { PromptLimits } from './rules.ts'
import { createRuns } from './runs/runs.ts'
import type { Prompts, ProviderDetector } from './types.ts'

/** The runs delete their processes themselves. */
const UNLIMITED = { count: Infinity, ageMs: Infinity, totalLogBytes: Infinity }

export type OpenPromptsOptions = Omit<DetachedOptions, 'retention'> &
  Pick<PromptsOptions, 'activity'> & {
    /** Closed by the caller, before the prompts: a start may wait for it. */
    detector: ProviderDetector
    /** `minutes`: the time limit of a run. */
    limits: PromptLimits & { minutes: number }
  }

/** @param options.dir state directory of prompts, absolute. Created when missing */
export async function openPrompts(options: OpenPromptsOptions): Promise<Prompts> {
  const { dir, home, clock, log, activity, detector, limits } = options
  const processes = await openDetachedProcesses({
    ...options,
    dir: join(dir, 'processes'),
    retention: UNLIMITED,
  })
  const { minutes } = limits
  const startTimer = options.runningClock?.startTimer ?? startWallTimer
  const runs = await createRuns({ dir, processes, providers, detector, clock, startTimer, log, minutes })
  const prompts = await createPrompts({ dir, home, runs, providers, clock, log, activity, limits })
  return {
    ...prompts,
    async close() {
      await prompts.close()
      await runs.close()
      await processes.close()
    },
  }
}
