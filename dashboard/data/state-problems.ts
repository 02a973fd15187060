// Why boxes do not reach the state that was requested, and what to check.
import type { Box, BoxDetail } from '../../shared/api/boxes.ts'
import type { Boxes } from './items.ts'

const FINAL_STATES: Box['observedState'][] = ['running', 'suspended', 'deep_sleep', 'terminated']
/** Each box needs a request of its own. */
const MAX_BOXES = 10

/** The ids of the boxes that have been changing for the longest time. */
export const listChanging = (boxes: Boxes): string[] =>
  [...boxes.values()]
    .filter(({ observedState }) => !FINAL_STATES.includes(observedState))
    .sort((a, b) => a.updatedAt.localeCompare(b.updatedAt))
    .slice(0, MAX_BOXES)
    .map(({ id }) => id)

/** null: no attempt has failed. */
export function describeProblem({ state, job, events }: BoxDetail): string | null {
  if (job !== null)
    return job.lastError === null ? null : `Attempt ${job.attempt} has failed: ${job.lastError}`
  return state.observed === 'provision_failed' ? (events[0]?.reason ?? null) : null
}

/** Its boxes are in the directory `boxes` of the data directory. */
const LOCAL_REGION = 'us-west-2'

/** What to check beside `box doctor`. */
export function describeLog({ id, kind, region, isolation }: Box): string {
  if (kind === 'machine') return 'Check that the machine runs and reaches the coordinator.'
  const look = 'On the machine of the coordinator, look at its log'
  if (isolation?.level === 'container' || isolation?.level === 'vm') return `${look}.`
  const directory = region === LOCAL_REGION ? '' : `regions/${region}/`
  return `${look}, and at the log of the agent: ${directory}boxes/${id}/log in the data directory.`
}
