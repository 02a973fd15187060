// Runs the install script of a server in a shell, with a prefix and a home of its own.
import { spawn } from 'node:child_process'
import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { TOKEN } from './bundle-server.ts'
import { LONG_DEADLINE_MS } from './wait-until.ts'

export type InstallerOptions = {
  /** The program and its arguments. Default: sh. */
  shell?: string[]
  /** The text of the script. Default: the script of the server. */
  script?: string
  env?: Record<string, string>
  args?: string[]
}

export type InstallerResult = { status: number | null; stdout: string; stderr: string }

const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export const downloadScript = async (url: string): Promise<string> =>
  (await fetch(`${url}/install.sh`)).text()

/** As in `curl … | sh -s -- ARGUMENTS`: the script comes from stdin. */
export async function runInstaller(
  url: string,
  home: string,
  { shell = ['sh'], script, env = {}, args = ['--token', TOKEN] }: InstallerOptions = {},
): Promise<InstallerResult> {
  const text = script ?? (await downloadScript(url))
  const [program = 'sh', ...options] = shell
  const child = spawn(program, [...options, '-s', '--', ...args], {
    env: { PATH: SYSTEM_PATH, HOME: home, ...env },
    cwd: '/',
    timeout: LONG_DEADLINE_MS,
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      output[name] += chunk
    })
  // A script that exits early does not read all of its text.
  child.stdin.on('error', () => undefined).end(text)
  const status = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject).on('close', resolve)
  })
  return { status, ...output }
}

/** The paths of all files, directories and links in a directory. */
export function listTree(dir: string): string[] {
  if (!existsSync(dir)) return []
  return readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map((path) => (lstatSync(join(dir, path)).isDirectory() ? `${path}/` : path))
    .sort()
}
