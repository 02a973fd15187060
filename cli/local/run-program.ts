// Runs a program of the coordinator that prints a result: code that uses the database or the machine is not part of `box`.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { PROJECT_DIR, SOURCE_EXTENSION } from '../project-directory.ts'

export type ProgramResult = { exitCode: number | null; stdout: string; stderr: string }

/** @param name of a file in coordinator/server, without its extension */
export async function runProgram(
  name: string,
  env: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
): Promise<ProgramResult> {
  const child = spawn(
    process.execPath,
    [join(PROJECT_DIR, `coordinator/server/${name}${SOURCE_EXTENSION}`)],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env,
      signal,
    },
  )
  const [stdout, stderr] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    child.exitCode ?? once(child, 'exit'),
  ])
  return { exitCode: child.exitCode, stdout, stderr }
}
