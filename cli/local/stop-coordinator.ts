// Stops the coordinator of a data directory and the boxes on this machine.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { CoordinatorRecord, SuspendedBoxes } from '../../shared/coordinator-process.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printMessage, printStderr } from '../output/print.ts'
import { readReadiness } from './readiness.ts'
import { runProgram } from './run-program.ts'
import { sendSignal, waitUntilExited } from './running-coordinator.ts'

/** Longer than a coordinator waits for its boxes. */
const STOP_TIMEOUT_MS = 120_000

/** Sends the signal of Ctrl-C, with which a coordinator suspends its boxes. Resolves when it has exited. @throws CliError */
export async function stopCoordinator(coordinator: CoordinatorRecord, signal: AbortSignal): Promise<void> {
  const { url, pid } = coordinator
  // For a coordinator that is stopping, a further signal means: exit immediately.
  if ((await readReadiness(url, signal)) !== 'stopping') sendSignal(coordinator, 'SIGINT')
  try {
    if (await waitUntilExited(coordinator, STOP_TIMEOUT_MS, signal)) return
  } catch (error) {
    if (signal.aborted) printMessage('interrupted; the coordinator continues to stop.')
    throw error
  }
  throw new CliError(
    EXIT.failed,
    `The coordinator (pid ${pid}) has not stopped after ${STOP_TIMEOUT_MS / 1000} s. Stop it with \`kill -9 ${pid}\`, then run \`box down\` again.`,
  )
}

/** Suspends the boxes that run without a coordinator, for example after SIGTERM. @throws CliError while a coordinator runs */
export async function suspendRemainingBoxes(dataDir: string, signal: AbortSignal): Promise<SuspendedBoxes> {
  if (!existsSync(join(dataDir, 'boxwood.db'))) return { suspended: [], stopped: [], failed: [], left: [] }
  const settings = { ...readDatabaseSettings(), PATH: process.env.PATH }
  const env = { ...settings, BOXWOOD_DATA: dataDir, BOXWOOD_LOG: 'error' }
  const { exitCode, stdout, stderr } = await runProgram('suspend-boxes', env, signal)
  if (exitCode !== 0) throw new CliError(EXIT.failed, stderr.trim() || 'The boxes could not be stopped.')
  if (stderr !== '') printStderr(stderr.trimEnd())
  return JSON.parse(stdout) as SuspendedBoxes
}

/** The variables that select the database: Postgres clients also read PGPASSWORD and others, and a file in HOME. */
const readDatabaseSettings = (): Record<string, string | undefined> =>
  Object.fromEntries(
    Object.entries(process.env).filter(([name]) => /^(BOXWOOD_DATABASE_URL|PG[A-Z]+|HOME)$/.test(name)),
  )
