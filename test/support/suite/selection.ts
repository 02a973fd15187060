// Which test files `npm test`, `npm run test:long` and `npm run test:load` run, and which of them run alone.
import { globSync } from 'node:fs'
import { basename, join, matchesGlob } from 'node:path'
import { asksForPrograms } from './asking-files.ts'

export const PARTS = ['short', 'long', 'load'] as const
export type Part = (typeof PARTS)[number]

type Choice = { glob: string; reason: string }

/**
 * `npm run test:load` runs these files. CI does not run them: each takes minutes, and the files of the other parts test the same
 * behaviour with less load.
 */
const LOAD: readonly Choice[] = [
  { glob: 'test/e2e/metrics-load.test.ts', reason: 'measures minutes of load' },
  { glob: 'test/e2e/shared-ports/largest-transfers.test.ts', reason: 'transfers 2.5 GiB' },
  { glob: 'test/e2e/dashboard/all-behind-*.test.ts', reason: 'repeats all pages behind a proxy' },
  { glob: 'test/e2e/dashboard/terminal-gigabyte.test.ts', reason: 'prints 1 GiB' },
  { glob: 'test/faults/replicas-*.test.ts', reason: 'kills three coordinators under load for minutes' },
  {
    glob: 'test/e2e/replicas/load.test.ts',
    reason: 'starts boxes at each isolation level, and transfers 1 GB',
  },
  { glob: 'test/faults/random-faults.test.ts', reason: 'breaks connections for a minute' },
  { glob: 'test/faults/engines/podman*.test.ts', reason: 'repeats the faults of Docker with Podman' },
]

/** `npm run test:long` runs these files, `npm test` those that are in no other part: a new test file is short. */
const LONG: readonly Choice[] = [
  { glob: 'test/agent/prompts/real/**', reason: 'downloads the coding agents, 1.3 GB' },
  { glob: 'test/e2e/real-prompts/**', reason: 'downloads the coding agents, 1.3 GB' },
  { glob: 'test/e2e/secrets/coding-agents.test.ts', reason: 'downloads the coding agents, 1.3 GB' },
  { glob: 'test/e2e/secrets/machine.test.ts', reason: 'installs an agent on a machine' },
  { glob: 'test/e2e/install-packages.test.ts', reason: 'installs packages of npm, pip and cargo' },
  { glob: 'test/e2e/dashboard/hostile-*.test.ts', reason: 'opens all pages of the dashboard' },
  {
    glob: 'test/client/{runtimes,killed,gigabytes}.test.ts',
    reason: 'downloads runtimes, and transfers gigabytes',
  },
  { glob: 'test/client/integrations/**', reason: 'downloads what boxes are plugged into, 0.2 GB' },
  { glob: 'test/e2e/openapi-tools.test.ts', reason: 'downloads tools, 70 MB, and compiles clients' },
  { glob: 'test/cli/mcp-{other-clients,tasks}.test.ts', reason: 'downloads clients, 0.1 GB' },
  { glob: 'test/cli/{mcp-hosts,skill-agents}.test.ts', reason: 'downloads the coding agents, 1.3 GB' },
  { glob: 'test/cli/replicas.test.ts', reason: 'starts Postgres and a coordinator' },
  { glob: 'test/cli/mcp{,-files,-grants,-install}.test.ts', reason: 'takes more than 10 seconds' },
  {
    glob: 'test/cli/mcp-{faults,load,gigabyte}.test.ts',
    reason: 'ends clients during their calls, sends 100 calls at once, and prints 1 GB',
  },
  { glob: 'test/e2e/replicas/**', reason: 'repeats other files through two coordinators' },
  { glob: 'test/e2e/npm-package.test.ts', reason: 'builds and installs the npm package' },
  { glob: 'test/e2e/readme.test.ts', reason: 'installs the project with npm ci' },
  { glob: 'test/install/**', reason: 'installs the npm package, behind proxies and as a service' },
  { glob: 'test/bootstrap/**', reason: 'installs agents on machines' },
  { glob: 'test/support/root-filesystems/**', reason: 'builds root file systems with mmdebstrap' },
  { glob: 'test/e2e/providers/**', reason: 'starts Docker, Podman and Incus' },
  {
    glob: 'test/coordinator/providers/machine-state/**',
    reason: 'starts boxes at each isolation level, and of each engine, in namespaces of their own',
  },
  {
    glob: 'test/coordinator/providers/docker/*/podman*.test.ts',
    reason: 'repeats docker.test.ts with Podman',
  },
  {
    glob: 'test/coordinator/providers/docker/machines.test.ts',
    reason: 'starts boxes on Docker, and kills it',
  },
  {
    glob: 'test/coordinator/providers/docker/agent-volume.test.ts',
    reason: 'copies the agent into an engine of its own',
  },
  {
    glob: 'test/coordinator/providers/docker/kills.test.ts',
    reason: 'kills the coordinator after each call',
  },
  {
    glob: 'test/coordinator/providers/docker/repairs.test.ts',
    reason: 'prunes an engine of its own',
  },
  {
    glob: 'test/coordinator/providers/incus/cluster.test.ts',
    reason: 'waits until boxes of a failed member are degraded',
  },
  { glob: 'test/e2e/machines/**', reason: 'boots root file systems' },
  { glob: 'test/e2e/machine-*.test.ts', reason: 'builds, restarts and compares several agents' },
  { glob: 'test/e2e/dashboard/cut-connections.test.ts', reason: 'cuts the connections of four tabs' },
  { glob: 'test/e2e/dashboard/behind-*.test.ts', reason: 'repeats other files behind nginx and Caddy' },
  { glob: 'test/e2e/dashboard/many-tabs.test.ts', reason: 'opens twenty tabs' },
  { glob: 'test/e2e/dashboard/terminal-survival.test.ts', reason: 'kills the coordinator and the agent' },
  { glob: 'test/e2e/dashboard/accessibility.test.ts', reason: 'runs axe-core 200 times' },
  { glob: 'test/e2e/dashboard/keyboard.test.ts', reason: 'presses Tab through each page' },
  { glob: 'test/e2e/dashboard/roles.test.ts', reason: 'opens each page with four sessions' },
  { glob: 'test/e2e/dashboard/faults.test.ts', reason: 'kills the coordinator, and prints 50 MB' },
  { glob: 'test/e2e/desktop.test.ts', reason: 'starts a desktop, and two browsers' },
  { glob: 'test/e2e/agent-upgrade.test.ts', reason: 'builds and restarts several agents' },
  { glob: 'test/e2e/agent-socket.test.ts', reason: 'restarts coordinators at each isolation level' },
  { glob: 'test/e2e/half-sent-requests.test.ts', reason: 'starts coordinators at each isolation level' },
  { glob: 'test/e2e/postgres*.test.ts', reason: 'repeats other files on Postgres' },
  { glob: 'test/e2e/edge-largest-file.test.ts', reason: 'transfers 1 GiB' },
  { glob: 'test/e2e/shared-ports/large-cookies.test.ts', reason: 'fills the cookies of a browser' },
  { glob: 'test/e2e/shared-ports/frameworks.test.ts', reason: 'downloads Vite and Next, 0.4 GB' },
  { glob: 'test/e2e/secrets/canary.test.ts', reason: 'searches the memory and the files of boxes' },
  { glob: 'test/e2e/secrets/many-connections.test.ts', reason: 'transfers 1 GB' },
  { glob: 'test/e2e/fuzz.test.ts', reason: 'sends 25 random requests to each route' },
  { glob: 'test/cli/completion-shells.test.ts', reason: 'types into bash, zsh and fish' },
  {
    glob: 'test/coordinator/boxes/lifecycle/random-histories.test.ts',
    reason: 'simulates 200 histories of a box',
  },
  { glob: 'test/coordinator/providers/incus/{faults,provider}.test.ts', reason: 'starts ten Incus servers' },
  { glob: 'test/faults/**', reason: 'kills, cuts connections, floods and fills disks' },
  { glob: 'test/e2e/{box-faults,*-killed}.test.ts', reason: 'kills the coordinator, and agents' },
  { glob: 'test/{e2e,coordinator}/**/*hostile-agent*.test.ts', reason: 'tries each malformed message' },
  { glob: 'test/agent/**/agent-crash.test.ts', reason: 'kills the agent' },
  {
    glob: 'test/agent/**/{shell-runner*,without-host,spawner-fallback}.test.ts',
    reason: 'repeats other files without the native parts',
  },
  { glob: 'test/e2e/cli-long.test.ts', reason: 'transfers gigabytes, and starts ten boxes' },
  {
    glob: 'test/e2e/{edge-terminal-levels,inherited-descriptors,ports-host-network,own-network}.test.ts',
    reason: 'starts coordinators at each isolation level',
  },
  {
    glob: 'test/e2e/{commands-over-tunnel,up-down,up-down-problems,npm-start}.test.ts',
    reason: 'upgrades, starts and stops coordinators',
  },
  { glob: 'test/e2e/{cli-terminal,log,cli-openssh}.test.ts', reason: 'types into terminals' },
  { glob: 'test/cli/{top,prompt-interrupt}.test.ts', reason: 'types into terminals' },
  {
    glob: 'test/coordinator/providers/local/as-unprivileged-user.test.ts',
    reason: 'repeats other files as another user',
  },
  { glob: 'test/agent/upgrade/builds.test.ts', reason: 'builds several agents' },
  { glob: 'test/support/suite/run-suite.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/e2e/cli-stopped-boxes.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/e2e/regions.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/agent/main.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/coordinator/billing/simulation.test.ts', reason: 'takes more than 10 seconds' },
  {
    glob: 'test/coordinator/providers/local/{clone-machine,machine-copies,random-kills,warm-machine}.test.ts',
    reason: 'takes more than 10 seconds',
  },
  { glob: 'test/coordinator/providers/parts/archives.test.ts', reason: 'takes more than 10 seconds' },
  {
    glob: 'test/coordinator/providers/parts/archives/tree-copy.test.ts',
    reason: 'takes more than 10 seconds',
  },
  { glob: 'test/agent/exec/too-many-open-files.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/e2e/edge-live-processes.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/e2e/traces.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/e2e/warm-boxes.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/agent/vitals/listeners.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/e2e/control-plane-process.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/agent/init/supervise.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/coordinator/server/backup/local-boxes.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/e2e/cli-exec-live.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/e2e/idle-boxes.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/e2e/prompts-suspend.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/e2e/edge-stream-churn.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/e2e/cli-processes.test.ts', reason: 'takes more than 10 seconds' },
  { glob: 'test/e2e/machines.test.ts', reason: 'takes more than 10 seconds' },
  {
    glob: 'test/cli/{boxes,completion,errors,life,lists,run,skill}.test.ts',
    reason: 'takes more than 10 seconds',
  },
  { glob: 'test/cli/{cp-directories,cp-files,cp-sources}.test.ts', reason: 'takes more than 10 seconds' },
  {
    glob: 'test/cli/{exec,exec-boxes,exec-live,exec-resume,ssh}.test.ts',
    reason: 'takes more than 10 seconds',
  },
  {
    glob: 'test/cli/{logs,logs-boxes,logs-resume,processes,prompt,prompts}.test.ts',
    reason: 'takes more than 10 seconds',
  },
]

/** `npm run check` runs these files. */
const CHECKS = 'test/*.test.ts'

/** These files compare times, CPU or memory with a bound, which other processes of the machine influence. */
const ALONE: readonly Choice[] = [
  { glob: 'test/agent/vitals/processes/live-processes.test.ts', reason: 'CPU of a process' },
  { glob: 'test/e2e/edge-live-processes.test.ts', reason: 'CPU of a process' },
  { glob: 'test/agent/prompts/runs/hostile.test.ts', reason: 'delay of the event loop, resident memory' },
  { glob: 'test/agent/prompts/runs/shell-runner.test.ts', reason: 'contains hostile.test.ts' },
  { glob: 'test/e2e/machine-bad-build.test.ts', reason: 'agents that must connect within 4 s' },
  { glob: 'test/agent/exec/output.test.ts', reason: 'resident memory' },
  { glob: 'test/e2e/edge-stream-limits.test.ts', reason: 'resident memory' },
  { glob: 'test/e2e/edge-large{,st}-file.test.ts', reason: 'resident memory' },
  { glob: 'test/e2e/edge-stream-churn.test.ts', reason: 'resident memory' },
  { glob: 'test/e2e/dashboard/{faults,terminal-gigabyte}.test.ts', reason: 'resident memory' },
  { glob: 'test/faults/client-misbehaves.test.ts', reason: 'resident memory' },
  { glob: 'test/cli/mcp-gigabyte.test.ts', reason: 'resident memory' },
  { glob: 'test/e2e/secrets/many-connections.test.ts', reason: 'resident memory' },
]

const matches = (file: string, choices: readonly Choice[]): boolean =>
  choices.some(({ glob }) => matchesGlob(file, glob))

/** The test files in a directory of the project, without those of the coding agents that tests install. */
export const listTestFiles = (projectDir: string, dir = 'test'): string[] =>
  globSync(join(dir, '**/*.test.ts'), {
    cwd: projectDir,
    exclude: (path) => ['node_modules', 'fixtures'].includes(basename(path)),
  })

export const isLong = (file: string): boolean => matches(file, LONG)
const isLoad = (file: string): boolean => matches(file, LOAD)
export const runsAlone = (file: string): boolean => matches(file, ALONE)

/** The long part also has the files of the short part that ask for optional programs, which the short part of CI hides. */
export function selectPart(projectDir: string, part: Part): string[] {
  const files = listTestFiles(projectDir).filter((file) => !matchesGlob(file, CHECKS))
  const isOfPart = {
    short: (file: string) => !isLoad(file) && !isLong(file),
    long: (file: string) => !isLoad(file) && (isLong(file) || asksForPrograms(projectDir, file)),
    load: isLoad,
  }
  return files.filter(isOfPart[part])
}

/** The globs that select no file of the project. */
export const listUnusedGlobs = (projectDir: string): string[] =>
  [...LOAD, ...LONG, ...ALONE]
    .map(({ glob }) => glob)
    .filter((glob) => !listTestFiles(projectDir).some((file) => matchesGlob(file, glob)))
