// Runs `program --version` and caches the result until the file changes.
import { stripVTControlCharacters } from 'node:util'
import type { Clock } from '../../../shared/clock.ts'
import { replaceControlCharacters } from '../../../shared/report-limits.ts'
import { shellQuote } from '../../../shared/shell-quote.ts'
import type { FoundProgram } from './file-identity.ts'
import type { Environment } from './login-variables.ts'
import type { Prober } from './probe.ts'

export type ProgramVersion = { version: string } | { failure: string }

export type ProgramVersions = {
  /** Concurrent calls for one program share a probe. */
  check(program: FoundProgram, env: Environment): Promise<ProgramVersion>
  /** Whether the last probe of this file failed. */
  hasFailed(program: FoundProgram): boolean
}

export type ProgramVersionsOptions = {
  home: string
  prober: Prober
  clock: Clock
  /** The time limit of a probe. Default: 20 s. OpenCode takes 8 s at its first start. */
  timeoutMs?: number
}

const TIMEOUT_MS = 20_000
const MAX_BYTES = 16 * 1024
/** A failure may have had another cause than the file: Node was missing, or the box was busy. */
const MAX_FAILURE_AGE_MS = 30_000
/** The most files with a cached version. */
const MAX_FILES = 32
const MAX_MESSAGE_CHARS = 300

type Entry = {
  identity: string
  result: Promise<ProgramVersion>
  value?: ProgramVersion
  finishedAt?: number
}

export function createProgramVersions(options: ProgramVersionsOptions): ProgramVersions {
  const { home, prober, clock, timeoutMs = TIMEOUT_MS } = options
  /** The key is the real path of the file. */
  const entries = new Map<string, Entry>()

  async function probe(path: string, env: Environment): Promise<ProgramVersion> {
    const run = { cwd: home, env, timeoutMs, maxBytes: MAX_BYTES }
    const result = await prober.run(`exec ${shellQuote(path)} --version`, run)
    const { exitCode, timedOut, stdout, stderr } = result
    const version = findVersion(stdout) ?? findVersion(stderr)
    if (exitCode === 0 && version !== null) return { version }
    if (timedOut) return { failure: `it did not exit within ${timeoutMs / 1000} s` }
    const message = lastLines(stderr.trim() === '' ? stdout : stderr, 1, MAX_MESSAGE_CHARS)
    if (exitCode === 0) return { failure: message === '' ? 'it printed nothing' : `it printed: ${message}` }
    const status = exitCode === null ? 'it was terminated' : `exit status ${exitCode}`
    return { failure: message === '' ? status : `${status}: ${message}` }
  }

  const isFresh = ({ value, finishedAt = 0 }: Entry): boolean =>
    value === undefined || 'version' in value || clock.now() - finishedAt < MAX_FAILURE_AGE_MS

  return {
    check(program, env) {
      const { path, realPath, identity } = program
      const cached = entries.get(realPath)
      if (cached?.identity === identity && isFresh(cached)) return cached.result
      const entry: Entry = {
        identity,
        result: probe(path, env)
          .catch((error: unknown) => ({ failure: error instanceof Error ? error.message : String(error) }))
          .then((value) => {
            Object.assign(entry, { value, finishedAt: clock.now() })
            return value
          }),
      }
      entries.delete(realPath)
      entries.set(realPath, entry)
      const [oldest] = entries.keys()
      if (entries.size > MAX_FILES && oldest !== undefined) entries.delete(oldest)
      return entry.result
    },
    hasFailed({ realPath, identity }) {
      const entry = entries.get(realPath)
      return entry?.identity === identity && entry.value !== undefined && 'failure' in entry.value
    },
  }
}

/** Finds a version such as 2.1.329 in "2.1.329 (Claude Code)". */
const findVersion = (text: string): string | null =>
  /\d+\.\d+[\w.+-]{0,60}/.exec(stripVTControlCharacters(text))?.[0] ?? null

/** Returns the last lines that are not blank, without escape sequences and control characters, for messages. */
export function lastLines(text: string, count: number, maxChars: number): string {
  const lines = stripVTControlCharacters(text)
    .split(/[\r\n]+/)
    .map((line) => replaceControlCharacters(line.trimEnd()))
  const tail = lines.filter((line) => line.trim() !== '').slice(-count)
  return tail.join('\n').slice(-maxChars).trim()
}
