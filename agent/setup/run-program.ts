// Runs a short program of the system, such as systemctl.
import { execFile } from 'node:child_process'
import { SetupError } from './setup-error.ts'

const TIMEOUT_MS = 90_000

export type Result = { status: number; output: string }

/** Never rejects: status 127 means that the program cannot be started. */
export function tryProgram(
  [program = '', ...args]: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<Result> {
  return new Promise((resolve) => {
    const options = { timeout: TIMEOUT_MS, env: { ...env, LC_ALL: 'C' }, encoding: 'utf8' } as const
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      const status = error === null ? 0 : typeof error.code === 'number' ? error.code : 127
      resolve({ status, output: `${stdout}${stderr}`.trim() || (error?.message ?? '') })
    })
    child.stdin?.end()
  })
}

/** @throws SetupError with what the program has printed */
export async function runProgram(
  command: readonly string[],
  env?: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const { status, output } = await tryProgram(command, env)
  if (status !== 0) throw new SetupError(`\`${command.join(' ')}\` failed: ${output}`)
}
