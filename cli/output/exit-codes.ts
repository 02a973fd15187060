// Exit codes of the box command, and the error class that carries one.
import { constants } from 'node:os'

export const EXIT = {
  ok: 0,
  /** The coordinator or the box rejected the request, or the operation failed. */
  failed: 1,
  usage: 2,
  unreachable: 3,
  notAuthenticated: 4,
  notFound: 5,
  /** `box exec`: the command exceeded its time limit. The code of timeout(1). */
  timedOut: 124,
  /** `box exec` could not run the command. As in docker, codes below 125 are the command's own. */
  execFailed: 125,
  /** `box ssh` and `box attach` failed, or the user disconnected with ~. (the code of ssh). */
  terminalFailed: 255,
  /** `box logs -f`: the exit status of the process is unknown. */
  lost: 125,
} as const

/** 128 + the signal's number, as a shell reports it. */
export const signalExitCode = (signalNumber: number): number => 128 + signalNumber

/** @param signal without SIG, such as TERM; a signal unknown on this machine gives execFailed */
export function commandExitCode(exitCode: number | null, signal: string | null): number {
  if (exitCode !== null) return exitCode
  const signalNumber = constants.signals[`SIG${signal}` as NodeJS.Signals]
  return signalNumber === undefined ? EXIT.execFailed : signalExitCode(signalNumber)
}

export type CliErrorOptions = { code?: string; fields?: Readonly<Record<string, unknown>>; cause?: unknown }

/** An error for the user: the message contains what happened and what to do. */
export class CliError extends Error {
  readonly exitCode: number
  /** The API's error code, if the API rejected the request; `no_such_box` where its not_found means the box. */
  readonly code: string | null
  /** The other fields of the API's error, such as `limit` or `balanceMicros`. Any values: they come from the server. */
  readonly fields: Readonly<Record<string, unknown>>

  constructor(exitCode: number, message: string, options: CliErrorOptions = {}) {
    super(message, { cause: options.cause })
    this.name = 'CliError'
    this.exitCode = exitCode
    this.code = options.code ?? null
    this.fields = options.fields ?? {}
  }
}

export const EXIT_CODE_HELP = `
Exit codes:
  0         success
  1         rejected or failed; stderr has the reason and the error code of the API
  2         wrong usage, or a value that the API does not accept
  3         cannot reach the coordinator or the box
  4         not authenticated: no API key or sign-in, or it was rejected
  5         no such box, snapshot, process, run, record, path, profile, key, link, member, workspace, secret or environment
  130, 143  interrupted by Ctrl-C or SIGTERM
exec, run, ssh, attach and logs -f exit with the code of the command on the box. When box itself fails, exec, run and
logs -f exit with 125, ssh and attach with 255.

With --json or -o json, an error is one line on stderr:
  {"error":{"code":"...","message":"..."}}`

/** `continues`: the command has not exited when `box` exits. */
export type CommandResult = { exitCode: number; continues: boolean }
