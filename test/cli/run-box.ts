// Runs the box command as a user does, as a process of its own, and hands back what the user sees.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { KEY } from './fake-coordinator.ts'

const MAIN = resolve(import.meta.dirname, '../../cli/main.ts')

export type Seen = { code: number | null; stdout: string; stderr: string }
export type SeenBytes = { code: number | null; stdout: Buffer; stderr: Buffer }

export type BoxOptions = {
  cwd?: string
  env?: Record<string, string>
  stdin?: string
  /** Nothing reads its stdout. */
  deaf?: boolean
  /** Called with the running process. */
  meanwhile?: (child: ChildProcess) => void
}

/** A coordinator at `url` is set by the environment; null leaves that out. */
export async function runBox(url: string | null, args: string[], options: BoxOptions = {}): Promise<Seen> {
  const { code, stdout, stderr } = await runBoxForBytes(url, args, options)
  return { code, stdout: stdout.toString(), stderr: stderr.toString() }
}

export async function runBoxForBytes(
  url: string | null,
  args: string[],
  options: BoxOptions = {},
): Promise<SeenBytes> {
  const { BOXWOOD_URL: _, BOXWOOD_API_KEY: __, BOXWOOD_DATA: ___, ...rest } = process.env
  const place = url === null ? {} : { BOXWOOD_URL: `${url}/api/v1`, BOXWOOD_API_KEY: KEY }
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: options.cwd ?? join(import.meta.dirname),
    env: { ...rest, ...place, ...options.env },
  })
  const seen: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] }
  if (!options.deaf) child.stdout.on('data', (chunk: Buffer) => seen.stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => seen.stderr.push(chunk))
  child.stdin.end(options.stdin ?? '')
  options.meanwhile?.(child)
  const [code] = (await once(child, options.deaf ? 'exit' : 'close')) as [number | null]
  child.stdout.destroy()
  return { code, stdout: Buffer.concat(seen.stdout), stderr: Buffer.concat(seen.stderr) }
}
