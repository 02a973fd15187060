// The local provider: runs each box as a group of isolated processes on the coordinator's machine.
import { chmod, mkdir } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { ISOLATION_LEVELS, type Isolation } from '../../../../shared/api/boxes.ts'
import { formatAgentVersion } from '../../../../shared/protocol.ts'
import { TIERS } from '../../../../shared/tiers.ts'
import { AGENT_SOCKET_FILE } from '../../../http/agent-socket.ts'
import { type MachineSpec, PermanentProviderError, type Provider } from '../../provider.ts'
import { createCgroups, listBoxCgroupDirs, probeCgroups } from './cgroups.ts'
import { describeFailure, describeIsolation } from './describe-isolation.ts'
import { chooseUid, createBoxDirectories, listLeftovers, removeTree } from './directories.ts'
import { createSharedDisk } from './disk-usage.ts'
import { createBoxEnvironment } from './environment.ts'
import { buildMountList, MAPPED_UID, VIEW_PATHS, writeEtcFiles } from './filesystem-view.ts'
import { launchBox } from './launch.ts'
import { buildBoxCommand, chooseLevel, type Level, type Network } from './levels/choose-level.ts'
import { type BoxPaths, boxPaths, type Machine, writeAtomically, writeMachine } from './machine-file.ts'
import { createMachines, getBoxesDir } from './machines.ts'
import { createRuntime, listUnusedRuntimes, NODE_FLAGS, RUNTIME_FILES, RUNTIME_LINKS } from './runtime.ts'

export type LocalProviderOptions = {
  dataDir: string
  log: Record<'debug' | 'info' | 'warn', (fields: object, message: string) => void>
  /** `auto` chooses the strongest level that works. A named level that does not work is an error. */
  isolation: 'auto' | Level
  /** The network of the boxes. `auto`: own where it works. `own`: an error where it does not work. Default: `host`. */
  network?: 'auto' | Network
  /**
   * The directory of the coordinator's socket, for the agents of boxes with their own network. Default: these agents
   * connect to the coordinator's URL.
   */
  socketDir?: string
  /** The root directory of the project that contains the agent. */
  projectRoot: string
  /** The coordinator's current URL, an origin. Written to the existing boxes at startup. */
  coordinatorUrl: string
  /** Environment variables that configure the agents. */
  agentSettings?: Readonly<Record<string, string>>
  nodePath?: string
  /** Milliseconds between SIGTERM and SIGKILL when a box is stopped. Default: 5 s. */
  graceMs?: number
  /** For tests: the command that the init runs instead of the agent. */
  agentCommand?: string[]
}

const SOCKET_URL = `unix:${VIEW_PATHS.socketDir}/${AGENT_SOCKET_FILE}`

/** Throws PermanentProviderError when the configured level or network does not work on this machine. */
export async function createLocalProvider(options: LocalProviderOptions): Promise<Provider> {
  const { log, isolation, nodePath = process.execPath, agentSettings = {} } = options
  const { socketDir = null } = options
  const dataDir = resolve(options.dataDir)
  const projectRoot = resolve(options.projectRoot)
  const boxesDir = getBoxesDir(dataDir)
  const isRoot = process.getuid?.() === 0
  await mkdir(boxesDir, { recursive: true })
  // A box at level process can enter its own directory, but cannot list the other boxes.
  await chmod(boxesDir, 0o711)
  const getRuntimeDir = await createRuntime(projectRoot, dataDir, nodePath)
  const runtimeDir = await getRuntimeDir()
  /** Paths that stay valid for running boxes after an upgrade, and when the project directory is moved. */
  const runtimePaths = {
    current: join(dirname(runtimeDir), RUNTIME_LINKS.current),
    node: join(dirname(runtimeDir), RUNTIME_LINKS.node),
  }
  const leftovers = [...(await listLeftovers(boxesDir)), ...(await listUnusedRuntimes(runtimeDir))]
  const candidates = isolation === 'auto' ? ISOLATION_LEVELS : [isolation]
  const probeInput = {
    boxesDir,
    dataDir,
    projectRoot,
    runtimeDir,
    nodePath,
    network: options.network ?? 'host',
  }
  const choice = await chooseLevel(candidates, probeInput)
  if (choice.level === null && (isolation !== 'auto' || options.network === 'own')) {
    throw new PermanentProviderError(describeFailure(choice))
  }
  const cgroups = await probeCgroups()
  const { level: isolationLevel, network, unavailable } = choice
  log.info({ isolationLevel, network, limits: cgroups.controllers }, 'local provider ready')
  log.debug({ unavailable }, 'unavailable isolation levels')

  const machines = createMachines({ ...options, dataDir, cgroups })
  await writeCoordinatorUrls()
  const closing = new AbortController()
  const cleanup = removeLeftovers()

  const { runExclusive, waitUntilIdle } = createBoxQueue()

  function requireLevel(): Level {
    if (choice.level === null) throw new PermanentProviderError(describeFailure(choice))
    return choice.level
  }

  async function prepareMachine(paths: BoxPaths, boxId: string, level: Level): Promise<Machine> {
    const existing = await machines.load(boxId)
    if (!isRoot && existing?.uid != null) {
      throw new PermanentProviderError(
        'The box was created by a coordinator that ran as root. Run the coordinator as root.',
      )
    }
    const machine = existing ?? { boxId, uid: null, level: null, isolation: null, init: null, cgroups: [] }
    const uid = isRoot ? (machine.uid ?? chooseUid(await listUsedUids())) : null
    await mkdir(paths.dir, { recursive: true })
    // Record the uid before files with this uid are created, so that no other box gets the same uid.
    await writeMachine(paths, { ...machine, uid })
    const currentLevel = machine.init === null ? level : machine.level
    await createBoxDirectories(paths, uid, currentLevel === 'process')
    return { ...machine, uid }
  }

  const listUsedUids = async (): Promise<Set<number>> =>
    new Set((await machines.list()).flatMap(({ uid }) => uid ?? []))

  /** Updates the url file of each box, which running agents re-read: a restarted coordinator may have another URL. */
  async function writeCoordinatorUrls(): Promise<void> {
    for (const { boxId, uid, isolation } of await machines.list()) {
      const { state } = boxPaths(boxesDir, boxId)
      // The isolation of a machine with a damaged file is unknown: assume that of new machines.
      const url = coordinatorUrlFor(isolation?.network ?? choice.network, options.coordinatorUrl)
      await writeAtomically(join(state, 'url'), url, uid).catch((err: unknown) =>
        log.warn({ boxId, err }, 'failed to write the coordinator URL for a box'),
      )
    }
  }

  function coordinatorUrlFor(network: Network, url: string): string {
    return network === 'own' && socketDir !== null ? SOCKET_URL : url
  }

  /** The agent reads both files before each connection. */
  async function writeConnectionFiles(
    paths: BoxPaths,
    spec: { coordinatorUrl: string; agentToken: string },
    uid: number | null,
  ): Promise<void> {
    await writeAtomically(join(paths.state, 'token'), spec.agentToken, uid)
    await writeAtomically(join(paths.state, 'url'), spec.coordinatorUrl, uid)
  }

  /** Runs in the background: a large directory does not delay the start, and a failure is only logged. */
  async function removeLeftovers(): Promise<void> {
    for (const dir of leftovers) {
      await removeTree(dir, closing.signal).catch((err: unknown) => {
        if (!closing.signal.aborted) log.warn({ err }, 'failed to remove a directory that is no longer used')
      })
    }
  }

  async function startMachine(spec: MachineSpec & { agentToken: string }): Promise<{ isolation: Isolation }> {
    const { boxId, hostname, tier } = spec
    const paths = boxPaths(boxesDir, boxId)
    const existing = await machines.load(boxId)
    if (existing === null)
      throw new PermanentProviderError('The machine of the box does not exist. Delete the box.')
    if (existing.init !== null && existing.isolation !== null) {
      // The machine is running. Record its init: load() may have found an unrecorded one.
      await writeMachine(paths, existing)
      const coordinatorUrl = coordinatorUrlFor(existing.isolation.network, spec.coordinatorUrl)
      await writeConnectionFiles(paths, { ...spec, coordinatorUrl }, existing.uid)
      return { isolation: existing.isolation }
    }
    const level = requireLevel()
    // Terminate processes that outlived their init.
    await machines.stop(paths, existing, 0)
    const prepared = await prepareMachine(paths, boxId, level)
    const { uid } = prepared
    const { network } = choice
    const coordinatorUrl = coordinatorUrlFor(network, spec.coordinatorUrl)
    await writeEtcFiles(paths, hostname, uid ?? MAPPED_UID, network)
    await writeConnectionFiles(paths, { ...spec, coordinatorUrl }, uid)
    const newIsolation: Isolation = { level, limits: cgroups.controllers, network }
    const machine: Machine = {
      ...prepared,
      level,
      isolation: newIsolation,
      cgroups: listBoxCgroupDirs(cgroups, boxId),
    }
    // Record the level and cgroups before they are in use, so that after a crash the next call can find the processes.
    await writeMachine(paths, machine)
    const initScript = machines.initScriptOf(level)
    const runtimeDir = await getRuntimeDir()
    const isNamespaced = level !== 'process'
    const defaultAgentCommand = isNamespaced
      ? [VIEW_PATHS.node, ...NODE_FLAGS, VIEW_PATHS.agent]
      : [runtimePaths.node, ...NODE_FLAGS, join(runtimePaths.current, RUNTIME_FILES.agent)]
    const mountInput = { paths, projectRoot, runtimeDir, nodePath, dataDir }
    const levelInput = {
      uid,
      hostname,
      mounts: isNamespaced
        ? buildMountList({ ...mountInput, socketDir: network === 'own' ? socketDir : null })
        : [],
      rootDir: paths.root,
      shellArgs: [initScript, ...(options.agentCommand ?? defaultAgentCommand)],
    }
    const command = buildBoxCommand(level, network, levelInput, paths.dir)
    const environmentInput = { isNamespaced, tierLimits: TIERS[tier], agentSettings }
    try {
      const init = await launchBox({
        paths,
        cgroups: createCgroups(cgroups, boxId, tier),
        command,
        env: createBoxEnvironment({ spec: { ...spec, coordinatorUrl }, paths, ...environmentInput }),
        initScript,
      })
      await writeMachine(paths, { ...machine, init })
      log.debug({ boxId, initPid: init.pid, isolationLevel: level }, 'machine started')
    } catch (error) {
      await machines.stop(paths, machine, 0)
      throw error
    }
    return { isolation: newIsolation }
  }

  return {
    name: 'local',
    agentVersion: formatAgentVersion(basename(runtimeDir)),
    sharedDisk: createSharedDisk(boxesDir, (boxId) => boxPaths(boxesDir, boxId).dir),
    describe: () => describeIsolation(choice, cgroups.controllers, isRoot),

    create: (spec) =>
      runExclusive(spec.boxId, async () => {
        const paths = boxPaths(boxesDir, spec.boxId)
        const level = requireLevel()
        const machine = await prepareMachine(paths, spec.boxId, level)
        return {
          isolation: machine.isolation ?? { level, limits: cgroups.controllers, network: choice.network },
        }
      }),

    start: (spec) => runExclusive(spec.boxId, () => startMachine(spec)),

    stop: (boxId) =>
      runExclusive(boxId, async () => {
        if (await machines.stopExisting(boxId)) log.debug({ boxId }, 'machine stopped')
      }),

    destroy: (boxId) =>
      runExclusive(boxId, async () => {
        const existed = await machines.stopExisting(boxId)
        await removeTree(boxPaths(boxesDir, boxId).dir)
        if (existed) log.debug({ boxId }, 'machine removed')
      }),

    inspect: (boxId) => runExclusive(boxId, () => machines.inspect(boxId)),

    async close() {
      closing.abort()
      await cleanup
      await waitUntilIdle()
    },
  }
}

/** Runs the calls for each box one at a time, in call order. Calls for different boxes run concurrently. */
function createBoxQueue() {
  const lastCalls = new Map<string, Promise<unknown>>()

  function runExclusive<T>(boxId: string, work: () => Promise<T>): Promise<T> {
    const call = (lastCalls.get(boxId) ?? Promise.resolve()).then(work, work)
    lastCalls.set(boxId, call)
    const removeIfLast = () => {
      if (lastCalls.get(boxId) === call) lastCalls.delete(boxId)
    }
    call.then(removeIfLast, removeIfLast)
    return call
  }

  async function waitUntilIdle(): Promise<void> {
    await Promise.allSettled(lastCalls.values())
  }

  return { runExclusive, waitUntilIdle }
}
