// What the local providers of all regions share: the isolation that works on this machine, the cgroups and the runtime directory.
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { ISOLATION_LEVELS } from '../../../shared/api/boxes.ts'
import { DEFAULT_REGION } from '../../../shared/tiers.ts'
import { createRuntime, listUnusedRuntimes, RUNTIME_LINKS, writeRootAdvice } from '../parts/runtime.ts'
import { PermanentProviderError } from '../provider.ts'
import { type Cgroups, probeCgroups } from './cgroups.ts'
import { describeFailure } from './describe-isolation.ts'
import { listLeftovers, removeTree } from './directories.ts'
import {
  type Accepted,
  assertNotWeaker,
  deriveRecord,
  readIsolationRecord,
  writeIsolationRecord,
} from './isolation-record.ts'
import { chooseLevel, type Level, type LevelChoice, type Network } from './levels/choose-level.ts'
import { listCopyUids } from './machine-copies.ts'
import { boxPaths } from './machine-file.ts'
import { createMachines, type Machines } from './machines.ts'
import { createBoxesDir, getBoxesDir, getRegionDir, listUsedRegions } from './region-directories.ts'

export type LocalHostOptions = {
  dataDir: string
  log: Record<'debug' | 'info' | 'warn', (fields: object, message: string) => void>
  /** `auto` chooses the strongest level that works. A named level that does not work is an error. */
  isolation: 'auto' | Level
  /** The network of the boxes. `auto`: own where it works. `own`: an error where it does not work. Default: `host`. */
  network?: 'auto' | Network
  /** Why boxes cannot have their own network, whatever the probes find. Default: null. */
  networkProblem?: string | null
  /** What may be weaker than at the last start. Default: a level and a network that are named above. */
  accepted?: Accepted
  /**
   * The directory of the coordinator's socket, to which the agents of boxes connect. Default: they connect to the
   * coordinator's URL.
   */
  socketDir?: string
  /** A line for a user of a box who needs root access. Absent: the boxes name the documentation. */
  rootAdvice?: string
  /** The root directory of the project that contains the agent. */
  projectRoot: string
  /** The coordinator's current URL, an origin. Written to the existing boxes at startup. */
  coordinatorUrl: string
  /** Environment variables that configure the agents. */
  agentSettings?: Readonly<Record<string, string>>
  nodePath?: string
  /** Milliseconds between SIGTERM and SIGKILL when a box is stopped. Default: 5 s. */
  graceMs?: number
  /** The command that the init runs instead of the agent. Only tests set it. */
  agentCommand?: string[]
  /** The probe results of a host with the same options, which replace another run of the probes. Only tests set them. */
  choice?: LevelChoice
}

export type LocalHost = {
  options: LocalHostOptions & { nodePath: string }
  choice: LevelChoice
  cgroups: Cgroups
  /** The directory of this version, at the start. */
  runtimeDir: string
  /** Returns the directory of this version, and rebuilds a directory that was removed. */
  getRuntimeDir(): Promise<string>
  /** Paths that stay valid for running boxes after an upgrade, and when the project directory is moved. */
  runtimePaths: { current: string; node: string }
  createMachines(boxesDir: string): Machines
  /** Whether another region than the one of the boxes directory has a directory of the box. */
  isInOtherRegion(boxId: string, boxesDir: string): boolean
  /** The uids of the boxes and copies of all regions. */
  listUsedUids(): Promise<Set<number>>
  close(): Promise<void>
}

/** Throws PermanentProviderError when the configured level or network does not work on this machine. */
export async function openLocalHost(given: LocalHostOptions): Promise<LocalHost> {
  const options = {
    ...given,
    dataDir: resolve(given.dataDir),
    projectRoot: resolve(given.projectRoot),
    nodePath: given.nodePath ?? process.execPath,
  }
  const { dataDir, log } = options
  const defaultBoxesDir = await createBoxesDir(dataDir, DEFAULT_REGION)
  const [{ getRuntimeDir, runtimeDir, choice }, cgroups] = await Promise.all([
    chooseIsolation({ ...options, boxesDir: defaultBoxesDir }),
    probeCgroups(),
  ])
  if (options.rootAdvice !== undefined) await writeRootAdvice(runtimeDir, options.rootAdvice)
  const listBoxesDirs = () =>
    listUsedRegions(dataDir).map((region) => getBoxesDir(getRegionDir(dataDir, region)))
  const leftovers = [
    ...(await Promise.all(listBoxesDirs().map(listLeftovers))).flat(),
    ...(await listUnusedRuntimes(runtimeDir)),
  ]
  await updateIsolationRecord()
  const { level: isolationLevel, network, unavailable } = choice
  log.info({ isolationLevel, network, limits: cgroups.controllers }, 'local provider ready')
  log.debug({ unavailable }, 'unavailable isolation levels')

  const closing = new AbortController()
  const cleanup = removeLeftovers()

  /** Runs in the background: a large directory does not delay the start, and a failure is only logged. */
  async function removeLeftovers(): Promise<void> {
    for (const dir of leftovers) {
      await removeTree(dir, closing.signal).catch((err: unknown) => {
        if (!closing.signal.aborted) log.warn({ err }, 'failed to remove a directory that is no longer used')
      })
    }
  }

  function createMachinesIn(boxesDir: string): Machines {
    return createMachines({ ...options, boxesDir, cgroups })
  }

  async function listMachines() {
    return (await Promise.all(listBoxesDirs().map((dir) => createMachinesIn(dir).list()))).flat()
  }

  /** Throws PermanentProviderError when the isolation is weaker than before. */
  async function updateIsolationRecord(): Promise<void> {
    const { level, network, unavailable, networkProblem, confinement } = choice
    if (level === null) return
    const current = {
      level,
      network,
      limits: cgroups.controllers,
      hasKeyringFilter: confinement !== null,
    }
    const stored = readIsolationRecord(dataDir)
    const recorded =
      stored ?? deriveRecord((await listMachines()).flatMap(({ isolation }) => isolation ?? []))
    if (recorded !== null) {
      const accepted = options.accepted ?? {
        level: options.isolation !== 'auto',
        network: options.network !== 'auto',
        protections: true,
      }
      const reason = unavailable.find((candidate) => candidate.level === recorded.level)?.reason ?? null
      assertNotWeaker(recorded, current, accepted, { level: reason, network: networkProblem })
    }
    if (!isDeepStrictEqual(stored, current)) await writeIsolationRecord(dataDir, current)
  }

  return {
    options,
    choice,
    cgroups,
    runtimeDir,
    getRuntimeDir,
    runtimePaths: {
      current: join(dirname(runtimeDir), RUNTIME_LINKS.current),
      node: join(dirname(runtimeDir), RUNTIME_LINKS.node),
    },
    createMachines: createMachinesIn,
    isInOtherRegion: (boxId, boxesDir) =>
      listBoxesDirs().some((dir) => dir !== boxesDir && existsSync(boxPaths(dir, boxId).dir)),
    async listUsedUids() {
      const copyUids = (await Promise.all(listBoxesDirs().map(listCopyUids))).flat()
      return new Set([...(await listMachines()).flatMap(({ uid }) => uid ?? []), ...copyUids])
    },
    async close() {
      closing.abort()
      await cleanup
    },
  }
}

/** Builds the runtime directory, which the probes run. */
async function chooseIsolation(options: LocalHost['options'] & { boxesDir: string }) {
  const { boxesDir, dataDir, projectRoot, nodePath, isolation } = options
  const getRuntimeDir = await createRuntime(projectRoot, dataDir, nodePath)
  const runtimeDir = await getRuntimeDir()
  if (options.choice !== undefined) return { getRuntimeDir, runtimeDir, choice: options.choice }
  const candidates = isolation === 'auto' ? ISOLATION_LEVELS : [isolation]
  const network = options.network ?? 'host'
  const choice = await chooseLevel(candidates, {
    boxesDir,
    dataDir,
    projectRoot,
    runtimeDir,
    nodePath,
    network,
    onSlow: (message) => options.log.warn({}, message),
  })
  if (choice.level === null && (isolation !== 'auto' || network === 'own')) {
    throw new PermanentProviderError(describeFailure(choice))
  }
  const networkProblem = choice.networkProblem ?? options.networkProblem ?? null
  return { getRuntimeDir, runtimeDir, choice: { ...choice, networkProblem } }
}
