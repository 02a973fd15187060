// The request of box exec, and errors about it.
import type { ExecRequest } from '../../shared/api/exec.ts'
import type { JsonOption } from '../arguments/options.ts'
import type { Session } from '../connection/session.ts'
import { toCommandLine } from '../output/format.ts'
import { printMessage } from '../output/print.ts'

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

export const toExecRequest = (
  args: string[],
  { workdir, cwd = workdir, env, timeout }: ExecOptions,
): ExecRequest => ({
  command: toCommandLine(args),
  ...(cwd !== undefined && { cwd }),
  ...(env !== undefined && { env }),
  ...(timeout !== undefined && { timeoutSeconds: timeout }),
})

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
