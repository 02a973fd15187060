// Runs a short program of the host, optionally as another user.
import { spawn } from 'node:child_process'
import { SYSTEM_PATH } from '../parts/system-path.ts'

/** Only the beginning of stderr is kept: a failing `rm` prints a line for each file. */
const MAX_ERROR_LENGTH = 500

export type RunCommandOptions = {
  /** Only a coordinator that runs as root can set it. The command has no supplementary groups and no privileges. */
  user?: { uid: number; gid: number }
  /** The coordinator enters it before it changes the user. Default: `/`. */
  cwd?: string
  /** Kills the command. */
  signal?: AbortSignal
}

/** Resolves when the program exits with code 0. Rejects with the first line that it prints to stderr. */
export async function runCommand(
  [program = '', ...args]: readonly string[],
  { user, cwd = '/', signal }: RunCommandOptions = {},
): Promise<void> {
  const child = spawn(program, args, {
    ...user,
    cwd,
    ...(signal === undefined ? {} : { signal, killSignal: 'SIGKILL' }),
    env: { PATH: SYSTEM_PATH, LC_ALL: 'C' },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const exited = new Promise<string | number | null>((resolve, reject) => {
    child.on('error', reject).on('close', (code, signalName) => resolve(signalName ?? code))
  })
  let output = ''
  // null when the process could not be created.
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(0, MAX_ERROR_LENGTH)
  })
  const exit = await exited
  if (exit !== 0) throw new Error(output.trim().split('\n')[0] || `${program} exited with ${exit}`)
}
