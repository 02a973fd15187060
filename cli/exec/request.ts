// The request of box exec, and errors about it.
import type { ExecRequest } from '../../shared/api/exec.ts'
import type { JsonOption } from '../arguments/options.ts'
import type { Session } from '../connection/session.ts'
import { toCommandLine } from '../output/format.ts'
import { printMessage, sanitize } from '../output/print.ts'
import { replaceNotFoundMessage } from '../processes/process-messages.ts'

export type ExecOptions = JsonOption & {
  detach?: boolean
  interactive?: boolean
  tty?: boolean
  /** false: --no-stdin. */
  stdin: boolean
  cwd?: string
  /** The same as `cwd`, as in docker exec. */
  workdir?: string
  env?: Record<string, string>
  timeout?: number
  disconnectTimeout?: number
}

/** `continues`: the command has not exited when `box` exits. */
export type CommandResult = { exitCode: number; continues: boolean }

export const toExecRequest = (
  args: string[],
  { workdir, cwd = workdir, env, timeout }: ExecOptions,
): ExecRequest => ({
  command: toCommandLine(args),
  ...(cwd !== undefined && { cwd }),
  ...(env !== undefined && { env }),
  ...(timeout !== undefined && { timeoutSeconds: timeout }),
})

/** For a request that starts a command, not_found means that the working directory does not exist on the box. */
export const replaceCwdError = <T>(response: Promise<T>, name: string, cwd = '~'): Promise<T> =>
  replaceNotFoundMessage(
    response,
    `No such directory on ${name}: '${sanitize(cwd)}'. Set another directory with --cwd.`,
  )

/** Prints `message` if the signal is aborted while `action` runs. */
export async function printIfInterrupted<T>(
  { signal }: Session,
  message: string,
  action: () => Promise<T>,
): Promise<T> {
  const onAbort = () => printMessage(message)
  signal.addEventListener('abort', onAbort)
  try {
    return await action()
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
