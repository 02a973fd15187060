// Selects the coordinator of `box up`, `box down` and `box status`: a data directory on this machine, or BOXWOOD_URL.
import { resolve } from 'node:path'
import type { CoordinatorRecord } from '../../shared/coordinator-process.ts'
import { shellQuote } from '../../shared/shell-quote.ts'
import { boxCommand } from '../command-name.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import { type Environment, findDataDirectory, parseBaseUrl } from '../find-coordinator.ts'
import { DEFAULT_DATA_PARENT } from '../project-directory.ts'
import { readRunningCoordinator } from './running-coordinator.ts'

export type SelectedCoordinator =
  | { isLocal: true; dataDir: string; running: CoordinatorRecord | null }
  /** BOXWOOD_URL is set, and is not the URL of the running coordinator of the data directory. */
  | { isLocal: false; url: string }

/** @throws CliError */
export function selectCoordinator(env: Environment, cwd: string): SelectedCoordinator {
  const dataDir = findDataDirectory(env, cwd, DEFAULT_DATA_PARENT)
  const running = readRunningCoordinator(dataDir)
  if (!env.BOXWOOD_URL) return { isLocal: true, dataDir, running }
  const { origin } = new URL(parseBaseUrl(env.BOXWOOD_URL))
  if (running !== null && new URL(running.url).origin === origin) return { isLocal: true, dataDir, running }
  return { isLocal: false, url: origin }
}

/** @param action completes "cannot be … from here" @throws CliError for a coordinator at BOXWOOD_URL */
export function requireLocal(selected: SelectedCoordinator, action: 'started' | 'stopped') {
  if (selected.isLocal) return selected
  throw new CliError(
    EXIT.failed,
    `BOXWOOD_URL selects the coordinator at ${selected.url}, which cannot be ${action} from here. ` +
      'For a coordinator on this machine, unset BOXWOOD_URL.',
  )
}

/** The start of a command for this data directory, as the user typed `box`. */
export function formatBoxCommand(dataDir: string, env: Environment, cwd: string): string {
  const isFound =
    findDataDirectory({ ...env, BOXWOOD_DATA: undefined }, cwd, DEFAULT_DATA_PARENT) === resolve(dataDir)
  return isFound ? boxCommand() : `BOXWOOD_DATA=${shellQuote(dataDir)} ${boxCommand()}`
}
