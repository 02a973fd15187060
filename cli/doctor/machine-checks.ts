// Checks of the machine on which boxes run: isolation, network, limits, engines, disk space and the address of the coordinator.

import { existsSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { CoordinatorRecord, MachineDiagnosis } from '../../shared/coordinator-process.ts'
import { boxCommand } from '../command-name.ts'
import { readReadiness } from '../local/readiness.ts'
import { runProgram } from '../local/run-program.ts'
import { readEnvironment } from '../local/running-process.ts'
import { type Check, fail, ok, warn } from './check.ts'

const GB = 1000 ** 3
/** Below the first, the coordinator suspends the box that grew most. With less than the second, it cannot start boxes. */
const LOW_SPACE = { fraction: 1 / 20, maxBytes: 2 * GB }
const MIN_FREE_BYTES = GB / 4

/** @param running the coordinator of this data directory, which uses its address */
export async function checkMachine(
  dataDir: string,
  running: CoordinatorRecord | null,
  signal: AbortSignal,
): Promise<Check[]> {
  const diagnosis = await diagnose(dataDir, running, signal)
  const disk = checkDisk(dataDir)
  if ('problem' in diagnosis)
    return [
      fail(
        'configuration',
        diagnosis.problem,
        'Fix the environment variables, or install the packages of Boxwood again.',
      ),
      disk,
    ]
  const address = running !== null ? [] : [await checkAddress(diagnosis, signal)]
  const machine = [
    checkIsolation(diagnosis),
    checkNetwork(diagnosis),
    checkLimits(diagnosis),
    ...checkEngines(diagnosis),
    disk,
    ...checkCopies(diagnosis),
    ...checkWarmMachines(diagnosis),
  ]
  return [...machine, ...address, ...checkDatabase(diagnosis)]
}

/** Runs the probes of the coordinator in a process of its own, also while a coordinator is running: with its variables. */
async function diagnose(
  dataDir: string,
  running: CoordinatorRecord | null,
  signal: AbortSignal,
): Promise<MachineDiagnosis | { problem: string }> {
  const env = {
    ...process.env,
    ...(running === null ? {} : readEnvironment(running.pid)),
    BOXWOOD_DATA: dataDir,
  }
  const { exitCode, stdout, stderr } = await runProgram('diagnose', env, signal)
  if (exitCode === 0) return JSON.parse(stdout) as MachineDiagnosis
  return { problem: stderr.trim().split('\n').join('; ') || 'the checks of the machine have failed' }
}

function checkIsolation({ level, levelAdvice }: MachineDiagnosis): Check {
  if (level === null) return fail('isolation', 'no level works', levelAdvice ?? 'Install bubblewrap.')
  return levelAdvice === null ? ok('isolation', level) : warn('isolation', level, levelAdvice)
}

function checkNetwork({ network, networkAdvice }: MachineDiagnosis): Check {
  if (network === 'own') return ok('network', 'each box has its own')
  const message = 'boxes share the network of this machine'
  return networkAdvice === null
    ? ok('network', `${message}, as configured`)
    : warn('network', message, networkAdvice)
}

const checkLimits = ({ limits }: MachineDiagnosis): Check =>
  limits.length > 0
    ? ok('limits', `enforced: ${limits.join(', ')}`)
    : warn(
        'limits',
        'the CPU and memory limits of tiers are not enforced: cgroups are not available',
        'Run the coordinator as root, or as a user to whom systemd delegates a cgroup.',
      )

export function checkEngines({
  engines,
  dockerStartLine,
}: Pick<MachineDiagnosis, 'engines' | 'dockerStartLine'>): Check[] {
  if (engines.length > 0)
    return engines.map(({ kind, status, message, advice }) => ({ name: kind, status, message, advice }))
  const line = dockerStartLine === null ? '' : `; then stop Boxwood and start it with:\n${dockerStartLine}`
  const advice = `For boxes with root and images, install one, such as Docker (Debian, Ubuntu: \`apt-get install docker.io\`)${line}`
  return [{ ...ok('engines', 'none: no Docker, Podman or Incus runs on this machine'), advice }]
}

/** Whether snapshots and forks of local boxes clone files. */
export function checkCopies({ hasReflinks }: Pick<MachineDiagnosis, 'hasReflinks'>): Check[] {
  if (hasReflinks === null) return []
  if (hasReflinks) return [ok('copies', 'the file system of the data directory clones files (reflinks)')]
  const message = 'the file system of the data directory has no reflinks: copies of boxes read all files'
  const advice =
    'With the data directory on XFS or Btrfs, a snapshot or a fork pauses a box only for a clone of its files.'
  return [{ ...ok('copies', message), advice }]
}

/** How long new boxes take to start. */
export const checkWarmMachines = ({ warmMachines }: Pick<MachineDiagnosis, 'warmMachines'>): Check[] =>
  warmMachines === null ? [] : [ok('new boxes', warmMachines.replace(/\.$/, ''))]

function checkDisk(dataDir: string): Check {
  let dir = dataDir
  while (!existsSync(dir)) dir = dirname(dir)
  const { bavail, blocks, bsize } = statfsSync(dir)
  const freeBytes = bavail * bsize
  const message = `${(freeBytes / GB).toFixed(1)} GB free in ${dir}`
  if (freeBytes < MIN_FREE_BYTES)
    return fail('disk', message, `Free space, for example with \`${boxCommand()} rm\`.`)
  return freeBytes < Math.min(blocks * bsize * LOW_SPACE.fraction, LOW_SPACE.maxBytes)
    ? warn('disk', message, 'Free space: the coordinator suspends the boxes that grow.')
    : ok('disk', message)
}

async function checkAddress(
  { address, url, addressProblem }: MachineDiagnosis,
  signal: AbortSignal,
): Promise<Check> {
  if (addressProblem === null) return ok('address', `${address} is free`)
  const readiness = await readReadiness(url, signal)
  if (readiness === 'starting')
    return warn(
      'address',
      `a coordinator is starting at ${address}`,
      `Wait until it accepts requests. If it has another data directory, set another address with \`${boxCommand()} up --listen\`.`,
    )
  if (readiness !== 'not responding')
    return fail(
      'address',
      `a coordinator with another data directory uses ${address}`,
      `Set BOXWOOD_DATA to its data directory, or set another address with \`${boxCommand()} up --listen\`.`,
    )
  return fail('address', `${address} cannot be used`, addressProblem)
}

function checkDatabase({ database }: MachineDiagnosis): Check[] {
  if (database === null) return []
  return database.problem === null
    ? [ok('database', 'Postgres, reachable')]
    : [fail('database', 'Postgres cannot be used', database.problem)]
}
