// Installs the real coding agents (claude, codex, opencode, pi) for tests, in the versions of package-lock.json.
//
//   const agents = await installCodingAgents()
//   t.test('…', { skip: agents.skip }, async (t) => { … agents.binDir … })
//
// The first call downloads 1.3 GB into test/support/coding-agents/node_modules, which takes about one minute.
import { dirname, join } from 'node:path'
import { installNpmPackages } from '../install-npm-packages.ts'

/** Has the package.json and the lock file of the coding agents. */
export const CODING_AGENTS_DIR = import.meta.dirname
const BIN_DIR = join(CODING_AGENTS_DIR, 'node_modules/.bin')
/** The scripts of the coding agents run with the Node of the test. */
export const CODING_AGENTS_PATH = [
  BIN_DIR,
  dirname(process.execPath),
  '/usr/local/bin',
  '/usr/bin',
  '/bin',
].join(':')

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
  return { ...agents, skip: await installNpmPackages(CODING_AGENTS_DIR, 'the coding agents') }
}
