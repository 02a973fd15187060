// Runs the box command as a separate process and returns its exit code and output.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'

const MAIN = resolve(import.meta.dirname, '../../cli/main.ts')

/** Finds the script `box`, so that messages name the command `box`. */
export const TEST_PATH = `${resolve(import.meta.dirname, '../fixtures/bin')}:${process.env.PATH}`

/** Does not exist: the tests use no profiles of the user. */
const NO_CONFIG = resolve(import.meta.dirname, 'no-config')

export type BoxResult = { code: number | null; stdout: string; stderr: string }
export type BoxByteResult = { code: number | null; stdout: Buffer; stderr: Buffer }

/** Bytes are for arguments that are not UTF-8. */
export type BoxArgument = string | Buffer

export type BoxOptions = {
  cwd?: string
  env?: Record<string, string>
  /** null: stdin stays open. Default: empty. */
  stdin?: string | Buffer | null
  /** Do not read its stdout. */
  ignoreStdout?: boolean
  /** Called with the running process. */
  onSpawn?: (child: ChildProcess) => void
}

/** A coordinator and a key, set in the environment. */
export type Target = { url: string; key: string }

/** A key that no coordinator accepts. */
const UNKNOWN_KEY = 'dcp_0123456789abcdef0123456789abcdef0123456789abcdef'

/** @param target a URL: the key is in `options.env`, or unknown. null: the environment has no coordinator and no key */
export async function runBox(
  target: Target | string | null,
  args: BoxArgument[],
  options: BoxOptions = {},
): Promise<BoxResult> {
  const { code, stdout, stderr } = await runBoxForBytes(target, args, options)
  return { code, stdout: stdout.toString(), stderr: stderr.toString() }
}

export async function runBoxForBytes(
  target: Target | string | null,
  args: BoxArgument[],
  options: BoxOptions = {},
): Promise<BoxByteResult> {
  const {
    BOXWOOD_URL: _,
    BOXWOOD_API_KEY: __,
    BOXWOOD_DATA: ___,
    BOXWOOD_PROFILE: ____,
    // tap adds a hook with which each child process starts more slowly.
    NODE_OPTIONS: _____,
    ...inheritedEnv
  } = process.env
  const { url, key } =
    typeof target === 'string' ? { url: target, key: UNKNOWN_KEY } : (target ?? { url: '', key: '' })
  const coordinatorEnv = target === null ? {} : { BOXWOOD_URL: `${url}/api/v1`, BOXWOOD_API_KEY: key }
  const [command, ...commandArgs] = createCommand([process.execPath, MAIN, ...args])
  const child = spawn(command, commandArgs, {
    cwd: options.cwd ?? join(import.meta.dirname),
    env: { ...inheritedEnv, PATH: TEST_PATH, XDG_CONFIG_HOME: NO_CONFIG, ...coordinatorEnv, ...options.env },
  })
  const chunks: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] }
  if (!options.ignoreStdout) child.stdout.on('data', (chunk: Buffer) => chunks.stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.stderr.push(chunk))
  // The command may close its stdin before it has read everything.
  child.stdin.on('error', () => undefined)
  if (options.stdin !== null) child.stdin.end(options.stdin ?? '')
  options.onSpawn?.(child)
  // Unread output prevents `close`.
  const [code] = (await once(child, options.ignoreStdout ? 'exit' : 'close')) as [number | null]
  child.stdout.destroy()
  return { code, stdout: Buffer.concat(chunks.stdout), stderr: Buffer.concat(chunks.stderr) }
}

/** Runs a line of bash with `box` on its PATH. */
export async function runInShell({ url, key }: Target, script: string): Promise<BoxResult> {
  const { NODE_OPTIONS: _, ...env } = process.env
  const child = spawn('bash', ['-c', script], {
    env: {
      ...env,
      PATH: TEST_PATH,
      XDG_CONFIG_HOME: NO_CONFIG,
      BOXWOOD_URL: `${url}/api/v1`,
      BOXWOOD_API_KEY: key,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const chunks: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] }
  child.stdout.on('data', (chunk: Buffer) => chunks.stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.stderr.push(chunk))
  const [code] = (await once(child, 'close')) as [number | null]
  return {
    code,
    stdout: Buffer.concat(chunks.stdout).toString(),
    stderr: Buffer.concat(chunks.stderr).toString(),
  }
}

/** Node can pass only text: bash creates the other arguments. */
function createCommand(args: [string, ...BoxArgument[]]): [string, ...string[]] {
  const [command, ...rest] = args
  if (rest.every((arg) => typeof arg === 'string')) return [command, ...rest]
  return ['bash', '-c', `exec ${args.map(quoteForBash).join(' ')}`]
}

const quoteForBash = (arg: BoxArgument): string =>
  `$'${[...Buffer.from(arg)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}'`
