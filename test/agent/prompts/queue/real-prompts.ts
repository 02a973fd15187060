// Prompts over real runs with a fake coding agent: the model of a prompt is the file name of its program.
import type { Test } from 'tap'
import { createActivityTracker } from '../../../../agent/activity-tracker.ts'
import { createPrompts } from '../../../../agent/prompts/prompts.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { silentLog } from '../../../support/tunnel.ts'
import { fakeProviders, openRuns } from '../runs/support.ts'

/** To restart the agent, close it and open it again. */
export async function openRealPrompts(t: Pick<Test, 'teardown'>, home: string) {
  const runs = await openRuns(t, home)
  const prompts = await createPrompts({
    dir: runs.dir,
    home,
    runs: runs.runs,
    providers: fakeProviders,
    clock: systemClock,
    log: silentLog,
    activity: createActivityTracker(systemClock),
    limits: { runs: 4, conversations: 200, queued: 100 },
  })
  return {
    prompts,
    runs,
    async close() {
      await prompts.close()
      await runs.close()
    },
  }
}
