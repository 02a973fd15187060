// What the box command exits with, and the one error that carries it.
import { constants } from 'node:os'

export const EXIT = {
  ok: 0,
  /** The coordinator or the box refused, or what was waited for failed. */
  refused: 1,
  usage: 2,
  unreachable: 3,
  notSignedIn: 4,
  notFound: 5,
  /** `box exec`: the command ran into its time limit, as timeout(1) has it. */
  timedOut: 124,
  /** `box exec` could not run the command: below 125 is the command's own, as docker has it. */
  execFailed: 125,
  /** `box logs -f`: nobody knows how the command ended, so this is no code of its own either. */
  lost: 125,
} as const

/** 128 + the signal's number, as a shell reports it. */
export const signalExit = (number: number): number => 128 + number

/** The command's own code. `signal` is without SIG, such as TERM; one that is not known here is execFailed. */
export function commandExit(exitCode: number | null, signal: string | null): number {
  if (exitCode !== null) return exitCode
  const number = constants.signals[`SIG${signal}` as NodeJS.Signals]
  return number === undefined ? EXIT.execFailed : signalExit(number)
}

/** What went wrong in one sentence that says what to do, and the exit code that goes with it. */
export class Failure extends Error {
  readonly exitCode: number
  /** The API's error code, when the API refused; no_such_box where it says not_found of a box. */
  readonly code: string | null

  constructor(exitCode: number, message: string, options: { code?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.name = 'Failure'
    this.exitCode = exitCode
    this.code = options.code ?? null
  }
}

export const EXIT_HELP = `
Exit codes:
  0  done
  1  refused, or it failed (the sentence on stderr says why, with the API's code)
  2  wrong usage
  3  the coordinator, or the box, cannot be reached
  4  not signed in: no API key, or one that is not accepted
  5  no such box, process, record or path
  exec and logs -f exit with the command's own code: see box exec --help`
