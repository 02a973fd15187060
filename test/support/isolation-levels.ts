// Which isolation levels of local boxes work on this machine, and whether boxes can have their own network.
import { chmodSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  chooseLevel,
  type Level,
  type Network,
} from '../../coordinator/providers/local/levels/choose-level.ts'
import { findMissingRequirement } from '../../coordinator/providers/local/network/own-network.ts'
import { buildRuntime } from '../../coordinator/providers/parts/runtime.ts'
import { ISOLATION_LEVELS } from '../../shared/api/boxes.ts'
import { PROJECT_DIR } from './project.ts'
import { requires } from './requires.ts'

let lastProbe: Promise<unknown> = Promise.resolve()
/** By level and network. */
const problems = new Map<string, Promise<string | false>>()

/** Each level, and why a test that needs it is skipped: the option `skip` of the test. */
export const availableLevels = (): Promise<{ level: Level; skip: string | false }[]> =>
  Promise.all(ISOLATION_LEVELS.map(async (level) => ({ level, skip: await findLevelProblem(level) })))

/** Why boxes cannot have their own network, whichever their level. */
export const findOwnNetworkProblem = (): string | false =>
  requires('slirp4netns', 'ip') || (findMissingRequirement() ?? false)

/** Why the level does not work on this machine. Runs a probe once per process. */
export function findLevelProblem(level: Level, network: Network = 'host'): Promise<string | false> {
  const key = `${level} ${network}`
  const problem = problems.get(key) ?? measure(level, network)
  problems.set(key, problem)
  return problem
}

async function measure(level: Level, network: Network): Promise<string | false> {
  const missing =
    (level === 'bubblewrap' && requires('bwrap')) || (network === 'own' && findOwnNetworkProblem())
  if (missing !== false) return missing
  // A probe has a timeout: probes at the same time would slow down each other.
  const result = lastProbe.then(() => probe(level, network))
  lastProbe = result
  return await result
}

async function probe(level: Level, network: Network): Promise<string | false> {
  const dataDir = mkdtempSync(join(tmpdir(), 'bw-levels-'))
  // At level process a box user needs search permission here.
  chmodSync(dataDir, 0o711)
  try {
    const { unavailable } = await chooseLevel([level], {
      boxesDir: dataDir,
      dataDir,
      projectRoot: PROJECT_DIR,
      runtimeDir: await buildRuntime(PROJECT_DIR, dataDir),
      nodePath: process.execPath,
      network,
      onSlow: (message) => console.error(message),
    })
    return unavailable[0]?.reason ?? false
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}
