// The order of the files of a run, and which of them still fit into its budget of time.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'

/** Seconds of slow files, for the order of a run without timings of an earlier run. */
const SLOW: Record<string, number> = {
  'test/e2e/metrics-load.test.ts': 155,
  'test/e2e/shared-ports/largest-transfers.test.ts': 150,
  'test/e2e/dashboard/accessibility.test.ts': 175,
  'test/coordinator/providers/incus/cluster.test.ts': 160,
  'test/e2e/postgres.test.ts': 145,
  'test/e2e/machine-bad-build.test.ts': 135,
  'test/faults/engines/docker.test.ts': 130,
  'test/e2e/dashboard/roles.test.ts': 125,
  'test/e2e/machines/join.test.ts': 125,
  'test/e2e/providers/podman-rootless.test.ts': 120,
  'test/faults/hostile-agent.test.ts': 115,
  'test/e2e/dashboard/behind-caddy.test.ts': 105,
  'test/e2e/dashboard/behind-nginx.test.ts': 95,
  'test/e2e/readme.test.ts': 90,
  'test/coordinator/providers/local/as-unprivileged-user.test.ts': 90,
  'test/e2e/real-prompts/claude.test.ts': 90,
  'test/coordinator/providers/docker/kills.test.ts': 90,
  'test/coordinator/providers/incus/faults.test.ts': 90,
  'test/e2e/agent-socket.test.ts': 85,
  'test/e2e/npm-package.test.ts': 85,
  'test/e2e/machine-upgrade.test.ts': 80,
  'test/coordinator/providers/docker/machines.test.ts': 80,
  'test/e2e/desktop.test.ts': 75,
  'test/e2e/machines.test.ts': 75,
  'test/e2e/shared-ports/frameworks.test.ts': 60,
  'test/e2e/machines/refusals.test.ts': 55,
  'test/e2e/inherited-descriptors.test.ts': 55,
  'test/e2e/traces.test.ts': 55,
  'test/e2e/providers/local.test.ts': 55,
  'test/coordinator/providers/incus/provider.test.ts': 50,
  'test/e2e/install-packages.test.ts': 50,
  'test/faults/engines/incus.test.ts': 50,
  'test/e2e/real-prompts/opencode.test.ts': 50,
  'test/e2e/providers/podman.test.ts': 50,
  'test/e2e/dashboard/hostile-origins.test.ts': 50,
  'test/e2e/dashboard/hostile-texts.test.ts': 45,
  'test/e2e/dashboard/timeline-and-processes.test.ts': 45,
  'test/faults/full-disk.test.ts': 45,
  'test/e2e/machines/impostor.test.ts': 45,
  'test/e2e/postgres-process.test.ts': 45,
  'test/faults/life-of-a-box.test.ts': 45,
  'test/e2e/providers/incus.test.ts': 40,
  'test/e2e/up-down.test.ts': 40,
  'test/e2e/providers/docker.test.ts': 40,
  'test/e2e/cli-long.test.ts': 40,
  'test/coordinator/providers/docker/archives/podman.test.ts': 35,
  'test/e2e/box-faults.test.ts': 35,
  'test/e2e/dashboard/keyboard.test.ts': 35,
  'test/faults/hostile-agent-metrics.test.ts': 35,
  'test/install/systemd-service.test.ts': 35,
  'test/e2e/commands-over-tunnel.test.ts': 35,
  'test/faults/connection-loss.test.ts': 35,
  'test/support/suite/run-suite.test.ts': 35,
  'test/e2e/fuzz.test.ts': 30,
  'test/faults/attach-cuts.test.ts': 30,
  'test/e2e/cli-exec-live.test.ts': 30,
  'test/e2e/commands-coordinator-killed.test.ts': 30,
  'test/e2e/agent-upgrade.test.ts': 30,
  'test/agent/init/supervise.test.ts': 30,
  'test/e2e/npm-start.test.ts': 30,
  'test/faults/terminal-cuts.test.ts': 30,
  'test/e2e/desktop-page.test.ts': 30,
  'test/support/root-filesystems/machine.test.ts': 25,
  'test/e2e/prompts-suspend.test.ts': 25,
  'test/e2e/control-plane-process.test.ts': 25,
  'test/e2e/dashboard/terminal-survival.test.ts': 25,
  'test/cli/logs-resume.test.ts': 25,
  'test/e2e/dashboard/many-tabs.test.ts': 25,
  'test/e2e/cli-terminal.test.ts': 25,
  'test/e2e/dashboard/faults.test.ts': 25,
  'test/e2e/secrets/coding-agents.test.ts': 25,
  'test/e2e/machines/cloned-disk.test.ts': 25,
  'test/e2e/cli-boxes.test.ts': 25,
  'test/e2e/dashboard/cut-connections.test.ts': 20,
  'test/faults/coordinator-killed.test.ts': 20,
  'test/e2e/secrets/tools.test.ts': 20,
  'test/cli/completion-shells.test.ts': 20,
  'test/agent/vitals/listeners.test.ts': 20,
  'test/faults/idempotency-killed.test.ts': 20,
  'test/e2e/cli-processes.test.ts': 20,
  'test/agent/exec/spawner-fallback.test.ts': 20,
  'test/e2e/machines/restored-coordinator.test.ts': 20,
  'test/cli/prompt.test.ts': 20,
  'test/coordinator/providers/docker/repairs.test.ts': 20,
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
