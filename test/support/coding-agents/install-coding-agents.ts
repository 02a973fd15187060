// Installs the real coding agents (claude, codex, opencode, pi) for tests, in the versions of package-lock.json.
//
//   const agents = await installCodingAgents()
//   t.test('…', { skip: agents.skip }, async (t) => { … agents.binDir … })
//
// The first call downloads 1.3 GB into test/support/coding-agents/node_modules, which takes about one minute.
import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { PROJECT_DIR } from '../project.ts'

/** Has the package.json and the lock file of the coding agents. */
export const CODING_AGENTS_DIR = import.meta.dirname
const CACHE_DIR = join(PROJECT_DIR, 'node_modules/.cache/coding-agents')
const BIN_DIR = join(CODING_AGENTS_DIR, 'node_modules/.bin')
const TIMEOUT_MS = 500_000
/** The scripts of the coding agents run with the Node of the test. */
export const CODING_AGENTS_PATH = [
  BIN_DIR,
  dirname(process.execPath),
  '/usr/local/bin',
  '/usr/bin',
  '/bin',
].join(':')

/**
 * `flock` makes the other test files wait for the installation. After a failure they do not repeat it for ten minutes.
 * Without a copy of the lock file, an interrupted installation counts as missing. `npm ci` would refuse the lock file of a
 * registry without the packages of other platforms.
 */
const INSTALL = `
cmp -s package-lock.json node_modules/.installed-lock && exit
if [ -n "$(find "$CACHE_DIR/failure" -mmin -10 2>/dev/null)" ]; then cat "$CACHE_DIR/failure" >&2; exit 1; fi
npm install --no-save --ignore-scripts=false --no-audit --no-fund --fetch-retries=1 --fetch-retry-mintimeout=1000 \\
  >"$CACHE_DIR/output" 2>&1 || {
  mv "$CACHE_DIR/output" "$CACHE_DIR/failure"; cat "$CACHE_DIR/failure" >&2; exit 1
}
rm -f "$CACHE_DIR/failure"
cp package-lock.json node_modules/.installed-lock`

/** What npm prints when it cannot connect to the registry. */
const NO_NETWORK =
  /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ERR_SOCKET_TIMEOUT|ENOTCACHED)\b/

export type CodingAgents = {
  /** The directory with claude, codex, opencode and pi. */
  binDir: string
  /** A PATH for them. */
  path: string
  /** Why the tests cannot run them; false: they are installed. */
  skip: string | false
}

/** Concurrent calls, also of other processes, wait for one installation. */
export async function installCodingAgents(): Promise<CodingAgents> {
  const agents = { binDir: BIN_DIR, path: CODING_AGENTS_PATH, skip: false } as const
  if (process.arch !== 'x64' && process.arch !== 'arm64')
    return { ...agents, skip: `the coding agents have no binaries for ${process.arch}` }
  mkdirSync(CACHE_DIR, { recursive: true })
  try {
    await promisify(execFile)('flock', [join(CACHE_DIR, 'lock'), 'sh', '-c', INSTALL], {
      cwd: CODING_AGENTS_DIR,
      env: { ...process.env, CACHE_DIR },
      timeout: TIMEOUT_MS,
    })
    return agents
  } catch (error) {
    const output = error instanceof Error && 'stderr' in error ? String(error.stderr) : ''
    const [code] = NO_NETWORK.exec(output) ?? []
    if (code) return { ...agents, skip: `the coding agents are not installed: no network (${code})` }
    throw error
  }
}
