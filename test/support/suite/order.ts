// The order of the files of a run, and which of them still fit into its budget of time.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'

/** Seconds of slow files, for the order of a run without timings of an earlier run. */
const SLOW: Record<string, number> = {
  'test/coordinator/providers/local/as-unprivileged-user.test.ts': 60,
  'test/coordinator/providers/local/archives.test.ts': 40,
  'test/coordinator/providers/local/pause.test.ts': 30,
  'test/coordinator/providers/local/runtime.test.ts': 25,
  'test/coordinator/providers/incus/cluster.test.ts': 150,
  'test/e2e/real-prompts/claude.test.ts': 120,
  'test/e2e/real-prompts/codex.test.ts': 120,
  'test/e2e/postgres.test.ts': 90,
  'test/e2e/dashboard/behind-nginx.test.ts': 60,
  'test/e2e/dashboard/behind-caddy.test.ts': 60,
  'test/e2e/metrics-load.test.ts': 155,
  'test/e2e/readme.test.ts': 60,
  'test/e2e/machine-upgrade.test.ts': 60,
  'test/e2e/secrets/coding-agents.test.ts': 40,
  'test/e2e/npm-package.test.ts': 50,
  'test/e2e/machines/join.test.ts': 50,
  'test/e2e/shared-ports/largest-transfers.test.ts': 150,
  'test/e2e/shared-ports/frameworks.test.ts': 40,
  'test/faults/thawed-box.test.ts': 35,
  'test/faults/life-of-a-box.test.ts': 30,
  'test/faults/hostile-agent.test.ts': 30,
  'test/agent/terminal/sessions.test.ts': 25,
  'test/faults/random-faults.test.ts': 25,
  'test/faults/attach-cuts.test.ts': 25,
  'test/cli/completion-shells.test.ts': 20,
  'test/bootstrap/install-checks.test.ts': 40,
}

/** Seconds of a file without a timing. End-to-end tests start several processes. */
const estimate = (file: string): number => SLOW[file] ?? (/^test\/(e2e|faults)\//.test(file) ? 8 : 3)

export type Seconds = (file: string) => number

/** @param timings of earlier runs on this machine */
export const createEstimate =
  (timings: Record<string, number>, slowdown: number): Seconds =>
  (file) =>
    timings[file] ?? estimate(file) * slowdown

/** The files that take longest start first, so that none of them runs at the end while the other CPUs are idle. */
export const sortLongestFirst = (files: readonly string[], seconds: Seconds): string[] =>
  [...files].sort((a, b) => seconds(b) - seconds(a) || a.localeCompare(b, 'en'))

/** A budget has the time for at least one of these shares, so that each file runs in one of three successive commits. */
const SHARES = 3

/** The share of a file does not depend on the other files. */
const getShare = (file: string): number => createHash('sha256').update(file).digest().readUInt32BE() % SHARES

/**
 * Sorts the files of a run that may end before all of them have run. One third of them is first, another one for each
 * revision. In each third, the files that run in no other part are first, because the others have been run without
 * optional programs.
 */
export function sortByValue(
  files: readonly string[],
  { seconds, revision, isLong }: { seconds: Seconds; revision: number; isLong: (file: string) => boolean },
): string[] {
  const rank = (file: string) => 2 * ((getShare(file) + revision) % SHARES) + (isLong(file) ? 0 : 1)
  return sortLongestFirst(files, seconds).sort((a, b) => rank(a) - rank(b))
}

/** The number of commits before this one; 0 without a repository. */
export function readRevision(projectDir: string): number {
  try {
    const count = execFileSync('git', ['rev-list', '--count', 'HEAD'], {
      cwd: projectDir,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    return Number(count)
  } catch {
    return 0
  }
}

export type Budget = {
  /** Whether a file that takes this long can still start. */
  hasTimeFor(seconds: number): boolean
  /** The seconds that are left, at least 0. */
  remainingSeconds(): number
}

/** @param minutes undefined: no limit. @param now a clock in milliseconds */
export function createBudget(minutes: number | undefined, now = () => performance.now()): Budget {
  const start = now()
  const remainingSeconds = () =>
    minutes === undefined ? Number.POSITIVE_INFINITY : Math.max(0, minutes * 60 - (now() - start) / 1000)
  return { remainingSeconds, hasTimeFor: (seconds) => seconds < remainingSeconds() }
}
