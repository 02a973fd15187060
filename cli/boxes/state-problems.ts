// Why boxes do not reach the state that was requested: the failure of the last attempt, for lists and for box show.
import type { Box, BoxDetail, ObservedState } from '../../shared/api/boxes.ts'
import type { Client } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

const FINAL_STATES: ObservedState[] = ['running', 'suspended', 'deep_sleep', 'terminated']
/** Each box needs a request of its own. */
const MAX_BOXES = 10

/** Its boxes are in the directory `boxes` of the data directory. */
const LOCAL_REGION = 'us-west-2'

/** `attempt`: the attempts that have failed. null: the box is not tried again. */
export type StateProblem = { reason: string; attempt: number | null }

/** Reads why boxes do not reach their state, of those that have been changing for the longest time. The keys are ids. */
export async function loadProblems(
  client: Client,
  boxes: readonly Box[],
): Promise<ReadonlyMap<string, StateProblem>> {
  const changing = boxes
    .filter(({ observedState }) => !FINAL_STATES.includes(observedState))
    .sort((a, b) => a.updatedAt.localeCompare(b.updatedAt))
    .slice(0, MAX_BOXES)
  const problems = await Promise.all(
    changing.map(async ({ id }) => [id, await loadProblem(client, id)] as const),
  )
  return new Map(problems.flatMap(([id, problem]) => (problem === null ? [] : [[id, problem] as const])))
}

/** null: the box may have been deleted meanwhile, or the coordinator is busy. The list is useful without it. */
async function loadProblem(client: Client, id: string): Promise<StateProblem | null> {
  try {
    return getProblem(await client.getBoxDetail(id))
  } catch (error) {
    if (error instanceof CliError && error.exitCode !== EXIT.unreachable && error.message !== '') return null
    throw error
  }
}

export function getProblem({ state, job, events }: BoxDetail): StateProblem | null {
  if (job !== null) return job.lastError === null ? null : { reason: job.lastError, attempt: job.attempt }
  const [newest] = events
  return state.observed === 'provision_failed' && newest ? { reason: newest.reason, attempt: null } : null
}

/** Such as `bootstrapping, attempt 4 failed`. */
export const formatStateProblem = (state: string, problem: StateProblem | undefined): string =>
  problem === undefined || problem.attempt === null ? state : `${state}, attempt ${problem.attempt} failed`

/** What to check when a box does not reach its state. */
export function describeChecks({ id, kind, region, isolation }: Box): string {
  if (kind === 'machine') return 'that the machine runs and reaches the coordinator: `box docs machines`'
  const doctor = 'on the machine of the coordinator: `box doctor`, and its log'
  if (isolation?.level === 'container' || isolation?.level === 'vm') return doctor
  const directory = region === LOCAL_REGION ? '' : `regions/${region}/`
  return `${doctor}; the log of the agent is ${directory}boxes/${id}/log in the data directory`
}

/** A line below a list. */
export const describeProblem = ({ hostname, observedState }: Box, { reason }: StateProblem): string =>
  `${hostname} ${observedState === 'provision_failed' ? 'could not be created' : `is ${observedState.replaceAll('_', ' ')}`}: ${sanitize(reason).replace(/\.?$/, '.')} \`box show ${hostname}\` says more.`
