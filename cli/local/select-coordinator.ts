// Selects the coordinator of `box up`, `box down` and `box status`: a data directory on this machine, or another URL.
import { resolve } from 'node:path'
import type { CoordinatorRecord } from '../../shared/coordinator-process.ts'
import { shellQuote } from '../../shared/shell-quote.ts'
import { boxCommand } from '../command-name.ts'
import { readRunningCoordinator } from '../connection/coordinator-record.ts'
import {
  type Environment,
  findDataDirectory,
  formatProfileSource,
  getRootUrl,
  parseBaseUrl,
} from '../connection/find-coordinator.ts'
import { selectProfile } from '../connection/select-profile.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { DEFAULT_DATA_PARENT } from '../project-directory.ts'

export type SelectedCoordinator =
  | { isLocal: true; dataDir: string; running: CoordinatorRecord | null }
  /** The URL of BOXWOOD_URL or of the selected profile is not that of the running coordinator of the data directory. */
  | { isLocal: false; url: string; urlSource: string }

/** @throws CliError */
export function selectCoordinator(env: Environment, cwd: string): SelectedCoordinator {
  const dataDir = findDataDirectory(env, cwd, DEFAULT_DATA_PARENT)
  const running = readRunningCoordinator(dataDir)
  const { url, urlSource } = findUrl(env)
  if (url === null) return { isLocal: true, dataDir, running }
  const { origin } = new URL(url)
  if (running !== null && new URL(running.url).origin === origin) return { isLocal: true, dataDir, running }
  return { isLocal: false, url: getRootUrl(url), urlSource }
}

/** null: the coordinator of the data directory. */
function findUrl(env: Environment): { url: string | null; urlSource: string } {
  if (env.BOXWOOD_URL) return { url: parseBaseUrl(env.BOXWOOD_URL), urlSource: 'BOXWOOD_URL' }
  const { profile } = selectProfile(env)
  return { url: profile?.url ?? null, urlSource: `The ${formatProfileSource(profile?.name ?? '')}` }
}

/** @param action completes "cannot be … from here" @throws CliError for a coordinator that is not on this machine */
export function requireLocal(
  selected: SelectedCoordinator,
  action: 'started' | 'stopped' | 'restarted' | 'backed up',
) {
  if (selected.isLocal) return selected
  throw new CliError(
    EXIT.failed,
    `${selected.urlSource} selects the coordinator at ${selected.url}, which cannot be ${action} from here. ` +
      `For a coordinator on this machine, ${selected.urlSource === 'BOXWOOD_URL' ? 'unset BOXWOOD_URL' : 'use --profile local'}.`,
  )
}

/** The start of a command for this data directory, as the user typed `box`. */
export function formatBoxCommand(dataDir: string, env: Environment, cwd: string): string {
  const isFound =
    findDataDirectory({ ...env, BOXWOOD_DATA: undefined }, cwd, DEFAULT_DATA_PARENT) === resolve(dataDir)
  return isFound ? boxCommand() : `BOXWOOD_DATA=${shellQuote(dataDir)} ${boxCommand()}`
}
