// Warm machines: they are started before a box needs them, and have never run anything but an agent that waits.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { STANDBY_FILES } from '../../../shared/standby-files.ts'
import { DEFAULT_TIER } from '../../../shared/tiers.ts'
import { findHostnameProblem } from './hostname.ts'
import type { LevelChoice } from './levels/choose-level.ts'
import { type BoxPaths, boxPaths, type Machine, writeMachine } from './machine-file.ts'
import { prepareMachine, type RegionMachines, requireIsolation } from './prepare-machine.ts'
import { launchWarmMachine } from './start-machine.ts'

const HOSTNAME = 'boxwood'
const READY_TIMEOUT_MS = 30_000
const POLL_MS = 20
/** A warm machine has fewer entries: those of its init and of its agent. */
const MAX_ENTRIES = 100

/** Why there can be no warm machines; null: there can. */
export function findWarmProblem({ level, network }: Pick<LevelChoice, 'level' | 'network'>): string | null {
  if (level === null) return 'no isolation level works'
  // A program of any box could change the agent that waits.
  if (level === 'process' && process.getuid?.() !== 0) return 'boxes have no user of their own'
  return findHostnameProblem({ level, network })
}

/** Resolves when the agent waits. */
export async function createWarmMachine(
  region: RegionMachines,
  boxId: string,
  coordinatorUrl: string,
  signal: AbortSignal,
): Promise<void> {
  const { host, boxesDir, machines } = region
  const paths = boxPaths(boxesDir, boxId)
  const prepared = await prepareMachine(region, boxId, requireIsolation(host).level)
  await launchWarmMachine(region, prepared, { boxId, hostname: HOSTNAME, tier: DEFAULT_TIER, coordinatorUrl })
  const deadline = performance.now() + READY_TIMEOUT_MS
  while (!existsSync(join(paths.state, STANDBY_FILES.waiting))) {
    if (performance.now() > deadline) throw new Error('The agent of a warm machine did not start in time.')
    await sleep(POLL_MS, undefined, { signal })
  }
  const machine = await machines.load(boxId)
  const directories = await describeDirectories(paths)
  if (machine === null || directories === null)
    throw new Error('A warm machine has changed while it started.')
  await writeMachine(paths, { ...machine, warm: directories })
}

/** Whether the machine runs, and nothing has written to its directories since it became ready. */
export async function isUntouched({ boxesDir }: RegionMachines, machine: Machine): Promise<boolean> {
  if (machine.init === null) return false
  const directories = await describeDirectories(boxPaths(boxesDir, machine.boxId)).catch(
    (error: NodeJS.ErrnoException) => {
      // An entry has been removed, or its name is not UTF-8.
      if (error.code === 'ENOENT') return null
      throw error
    },
  )
  return directories === machine.warm
}

/**
 * A digest of all entries of the directories that a box writes to, with their owners, modes, sizes and times of the last change,
 * which no program can set. null: there are too many.
 */
async function describeDirectories({ home, state, tmp, varTmp }: BoxPaths): Promise<string | null> {
  const hash = createHash('sha256')
  let remaining = MAX_ENTRIES
  const pending = [home, state, tmp, varTmp]
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    if (remaining-- === 0) return null
    const stats = await lstat(path, { bigint: true })
    const { ino, mode, uid, gid, size, ctimeNs } = stats
    hash.update(`${JSON.stringify(path)} ${[ino, mode, uid, gid, size, ctimeNs].join(' ')}\n`)
    if (!stats.isDirectory()) continue
    for (const name of (await readdir(path)).sort()) pending.push(join(path, name))
  }
  return hash.digest('hex')
}
