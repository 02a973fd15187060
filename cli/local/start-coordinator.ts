// Starts the coordinator in the background and waits until it accepts requests.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { LOG_FILE, type ReadyMessage } from '../../shared/coordinator-process.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printMessage, sanitize } from '../output/print.ts'
import { PROJECT_DIR } from '../project-directory.ts'

const START_SCRIPT = join(PROJECT_DIR, 'coordinator/start.sh')
const MAX_REASON_LINES = 10

export type StartedCoordinator = ReadyMessage & { pid: number }

export const getLogFile = (dataDir: string): string => join(dataDir, LOG_FILE)

/**
 * The coordinator gets a session of its own, so that it outlives the terminal, and appends its output to the log file.
 * @param variables in addition to those of this process @throws CliError with the reason from the log when the coordinator exits
 */
export async function startCoordinator(
  dataDir: string,
  signal: AbortSignal,
  variables: Readonly<Record<string, string>> = {},
): Promise<StartedCoordinator> {
  const log = openLog(dataDir)
  const child = spawn(START_SCRIPT, [], {
    cwd: PROJECT_DIR,
    detached: true,
    // The IPC channel carries the ReadyMessage.
    stdio: ['ignore', log.fd, log.fd, 'ipc'],
    env: { ...process.env, ...variables, BOXWOOD_DATA: dataDir },
  })
  closeSync(log.fd)
  try {
    const message = await waitUntilReady(child, signal)
    if (message === null) throw createStartError(child, log)
    return { ...message, pid: child.pid ?? Number.NaN }
  } catch (error) {
    if (signal.aborted)
      printMessage('interrupted; the coordinator continues to start. Stop it with `box down`.')
    throw error
  } finally {
    if (child.connected) child.disconnect()
    child.unref()
  }
}

/** Returns null when the process has exited. */
async function waitUntilReady(child: ChildProcess, signal: AbortSignal): Promise<ReadyMessage | null> {
  const waiting = new AbortController()
  const options = { signal: AbortSignal.any([signal, waiting.signal]) }
  try {
    return await Promise.race([
      once(child, 'message', options).then(([message]) => message as ReadyMessage),
      once(child, 'close', options).then(() => null),
    ])
  } finally {
    waiting.abort()
  }
}

type Log = { path: string; fd: number; offset: number }

function openLog(dataDir: string): Log {
  const path = getLogFile(dataDir)
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    const fd = openSync(path, 'a', 0o600)
    return { path, fd, offset: fstatSync(fd).size }
  } catch (error) {
    throw new CliError(
      EXIT.failed,
      `Cannot write ${path}: ${(error as Error).message}. Set BOXWOOD_DATA to a directory that you own.`,
    )
  }
}

function createStartError({ exitCode, signalCode }: ChildProcess, { path, offset }: Log): CliError {
  const log = readFileSync(path)
  // The coordinator may have rotated the log.
  const lines = log
    .subarray(log.length < offset ? 0 : offset)
    .toString('utf8')
    .trim()
    .split('\n')
  // Lines of JSON are log events: the coordinator prints the reason as text.
  const texts = lines.filter((line) => !line.startsWith('{'))
  const reason = (texts.length > 0 ? texts : lines).slice(-MAX_REASON_LINES).map(sanitize).join('\n')
  const status = exitCode === null ? `signal ${signalCode}` : `exit code ${exitCode}`
  return new CliError(
    EXIT.failed,
    `The coordinator did not start (${status}).\n${reason}\nThe log is in ${path}.`,
  )
}
