// Checks of the running coordinator: whether it responds, its version, the API key, and boxes that have failed.

import type { Account } from '../../shared/api/account.ts'
import { VERSION } from '../../shared/version.ts'
import { formatStateProblem, loadProblems, type StateProblem } from '../boxes/state-problems.ts'
import { boxCommand } from '../command-name.ts'
import { openSession } from '../connection/session.ts'
import { readReadiness } from '../local/readiness.ts'
import type { SelectedCoordinator } from '../local/select-coordinator.ts'
import { describeSkew, readServerInfo } from '../local/server-info.ts'
import { CliError } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { type Check, fail, ok, warn } from './check.ts'

const FAILED_STATES = ['provision_failed', 'degraded']

export async function checkCoordinator(selected: SelectedCoordinator, signal: AbortSignal): Promise<Check[]> {
  const url = selected.isLocal ? selected.running?.url : selected.url
  if (url === undefined) return [warn('coordinator', 'not running', `Start it with \`${boxCommand()} up\`.`)]
  const readiness = selected.isLocal ? await readReadiness(url, signal) : 'ready'
  if (readiness !== 'ready')
    return [
      fail(
        'coordinator',
        `${readiness} at ${url}`,
        `See the log, and restart it with \`${boxCommand()} down\` and \`${boxCommand()} up\`.`,
      ),
    ]
  return checkAccess(url, signal)
}

async function checkVersion(url: string, signal: AbortSignal): Promise<Check> {
  const info = await readServerInfo(url, signal)
  if (info === null)
    return warn('version', `${url} does not report a version`, 'Check that a proxy forwards `/`.')
  return info.version === VERSION
    ? ok('version', info.version)
    : warn('version', 'box and the coordinator differ', describeSkew(info.version))
}

async function checkAccess(url: string, signal: AbortSignal): Promise<Check[]> {
  try {
    const { client } = openSession(signal)
    const { key, boxes } = await client.request<Account>('GET', '/me')
    return [
      ok('coordinator', `running at ${url}`),
      await checkVersion(url, signal),
      ok('API key', key ? 'valid' : 'signed in'),
      checkBoxes(boxes, await loadProblems(client, boxes)),
    ]
  } catch (error) {
    if (signal.aborted || !(error instanceof CliError)) throw error
    return [fail('coordinator', `${url} does not accept requests`, error.message)]
  }
}

function checkBoxes(boxes: Account['boxes'], problems: ReadonlyMap<string, StateProblem>): Check {
  const failed = boxes.filter(
    ({ id, observedState }) => FAILED_STATES.includes(observedState) || problems.has(id),
  )
  const live = boxes.filter(({ observedState }) => observedState !== 'terminated')
  if (failed.length === 0) return ok('boxes', `${live.length}, none has failed`)
  const names = failed.map(({ id, hostname, observedState }) =>
    sanitize(`${hostname} (${formatStateProblem(observedState, problems.get(id))})`),
  )
  return warn('boxes', names.join(', '), `\`${boxCommand()} show NAME\` prints the reason.`)
}
