// Messages about commands, detached processes and command records: exit status, time limit, and not found.

import type { ProcessFields } from '../../shared/api/processes.ts'
import { boxCommand } from '../command-name.ts'
import { RequestTooLongError } from '../connection/api-errors.ts'
import { CliError, commandExitCode, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

export type ExitStatus = { exitCode: number | null; signal: string | null }

/** `exited 0`, `killed TERM`; only `status` when neither code nor signal is known. */
export function formatExit(status: string, { exitCode, signal }: ExitStatus): string {
  if (exitCode !== null) return `${status} ${exitCode}`
  return signal === null ? status : `${status} ${signal}`
}

/** Returns the first line of a command, for a table. --json has the whole text. */
export function formatCommand(command: string, isTruncated = false): string {
  const [firstLine = '', ...otherLines] = command.trimEnd().split('\n')
  if (otherLines.length > 0) return `${firstLine} …`
  return isTruncated ? `${firstLine}…` : firstLine
}

export const PROCESS_STATUSES = ['running', 'exited', 'killed', 'timed_out', 'lost'] as const

/** The status that the command history has for the process. */
export function getProcessStatus({
  running,
  lost,
  signal,
  timedOut,
}: ProcessFields): (typeof PROCESS_STATUSES)[number] {
  if (running) return 'running'
  if (lost) return 'lost'
  if (timedOut) return 'timed_out'
  return signal === null ? 'exited' : 'killed'
}

/** The exit code of `box` for an exited command. @throws CliError when the exit status is unknown */
export function toExitCode({ status, exitCode, signal }: ExitStatus & { status: string }): number {
  if (status !== 'lost') return commandExitCode(exitCode, signal)
  throw new CliError(
    EXIT.lost,
    'The exit status of the process is unknown: its box stopped or restarted, or the runner of the process was killed.',
  )
}

/** The same promise; a not_found error gets `message` in place of its own. */
export function replaceNotFoundMessage<T>(response: Promise<T>, message: string): Promise<T> {
  return response.catch((error) => {
    throw error instanceof CliError && error.code === 'not_found'
      ? new CliError(EXIT.notFound, message, { code: 'not_found' })
      : error
  })
}

export const noSuchProcessMessage = (boxName: string, id: string): string =>
  `No such process on ${boxName}: '${sanitize(id)}'. Run \`box ps ${boxName}\` to list processes.`

export const noSuchRecordMessage = (boxName: string, id: string): string =>
  `No such record on ${boxName}: '${sanitize(id)}'. Run \`box history ${boxName}\` to list records.`

/** @param hint what to do */
export const formatTimedOut = (seconds: number | undefined, hint: string): string =>
  `the command timed out${seconds === undefined ? '' : ` after ${seconds} s`}. ${hint}`

export const formatDetachedHint = (boxName: string, id: string): string =>
  `Follow it: ${boxCommand()} logs -f ${boxName} ${id}\nKill it:   ${boxCommand()} kill ${boxName} ${id}`

export const noSuchSessionMessage = (boxName: string, session: string): string =>
  `No such terminal session on ${boxName}: '${sanitize(session)}'. Run \`box sessions ${boxName}\` to list sessions.`

/**
 * For a request that starts a command, not_found means that the working directory does not exist on the box. What is too
 * long is the command, or a variable of it.
 */
export const replaceStartErrors = <T>(response: Promise<T>, name: string, cwd = '~'): Promise<T> =>
  replaceNotFoundMessage(
    response,
    `No such directory on ${name}: '${sanitize(cwd)}'. Set another directory with --cwd.`,
  ).catch((error) => {
    if (!(error instanceof RequestTooLongError)) throw error
    const { exitCode, code, size } = error
    const message = `The command is longer than ${size}. Put it into a file or on stdin.`
    throw new CliError(exitCode, message, { ...(code !== null && { code }), cause: error })
  })
