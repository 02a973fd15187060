// The local provider of one region: runs each box as a group of isolated processes on the coordinator's machine.
import { mkdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Isolation } from '../../../../shared/api/boxes.ts'
import { formatAgentVersion } from '../../../../shared/protocol.ts'
import { type Region, TIERS } from '../../../../shared/tiers.ts'
import { linkCompileCache, unlinkCompileCache } from '../../../agent-bundles/compile-cache.ts'
import { NODE_FLAGS } from '../../../agent-bundles/node-flags.ts'
import { AGENT_SOCKET_FILE } from '../../../http/agent-socket.ts'
import {
  type ArchiveContents,
  type ArchiveInfo,
  type ArchiveKey,
  type MachineSpec,
  PermanentProviderError,
  type Provider,
} from '../../provider.ts'
import { createArchives } from './archives/archives.ts'
import { createCgroups, listBoxCgroupDirs } from './cgroups.ts'
import { describeFailure, describeIsolation } from './describe-isolation.ts'
import { chooseUid, createBoxDirectories, removeTree } from './directories.ts'
import { createSharedDisk } from './disk-usage.ts'
import { createBoxEnvironment } from './environment.ts'
import { buildMountList, MAPPED_UID, VIEW_PATHS, writeEtcFiles } from './filesystem-view.ts'
import type { LocalHost } from './host.ts'
import { launchBox } from './launch.ts'
import { buildBoxCommand, type Level, type Network } from './levels/choose-level.ts'
import {
  type BoxPaths,
  boxPaths,
  type Machine,
  readMachine,
  writeAtomically,
  writeMachine,
} from './machine-file.ts'
import { createBoxesDir, getArchivesDir, getRegionDir } from './region-directories.ts'
import { ARCHIVE_ROOTS, restoreMachine } from './restore-machine.ts'
import { runInTurn } from './run-in-turn.ts'
import { RUNTIME_FILES } from './runtime.ts'

const SOCKET_URL = `unix:${VIEW_PATHS.socketDir}/${AGENT_SOCKET_FILE}`

/** The provider of one region. Closing the provider does not close the host. */
export async function createLocalProvider(host: LocalHost, region: Region): Promise<Provider> {
  const { options, choice, cgroups, runtimeDir, getRuntimeDir, runtimePaths } = host
  const { log, dataDir, projectRoot, nodePath, agentSettings = {}, socketDir = null } = options
  const boxesDir = await createBoxesDir(dataDir, region)
  const isRoot = process.getuid?.() === 0
  const machines = host.createMachines(boxesDir)
  await machines.continuePaused()
  const archives = createArchives({ dir: getArchivesDir(getRegionDir(dataDir, region)), log })
  await writeCoordinatorUrls()

  const { runExclusive, waitUntilIdle } = createBoxQueue()
  /** The captures of a box run one at a time: the end of a capture continues the processes. */
  const captures = createBoxQueue()

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
    const machine = existing ?? (await createMachine(boxId))
    const uid = isRoot ? (machine.uid ?? chooseUid(await host.listUsedUids())) : null
    await mkdir(paths.dir, { recursive: true })
    // Record the uid before files with this uid are created, so that no other box gets the same uid.
    await writeMachine(paths, { ...machine, uid })
    const currentLevel = machine.init === null ? level : machine.level
    await createBoxDirectories(paths, uid, currentLevel === 'process')
    return { ...machine, uid }
  }

  async function createMachine(boxId: string): Promise<Machine> {
    const uid = isRoot ? chooseUid(await host.listUsedUids()) : null
    return { boxId, uid, level: null, isolation: null, init: null, cgroups: [] }
  }

  async function capture(
    boxId: string,
    archive: ArchiveKey,
    contents: ArchiveContents,
    signal: AbortSignal,
  ): Promise<ArchiveInfo> {
    const interruption = new AbortController()
    const machine = await runExclusive(boxId, () => machines.beginCapture(boxId, interruption))
    if (machine === null)
      throw new PermanentProviderError('The machine of the box does not exist. Delete the box.')
    const files = { dir: boxPaths(boxesDir, boxId).dir, roots: ARCHIVE_ROOTS[contents], uid: machine.uid }
    const pause =
      machine.init === null ? undefined : () => runExclusive(boxId, () => machines.pause(boxId, interruption))
    const verify = () => {
      machines.endCapture(boxId)
      interruption.signal.throwIfAborted()
    }
    const captureSignal = AbortSignal.any([signal, interruption.signal])
    try {
      return await archives.capture(files, archive, { pause, verify, signal: captureSignal })
    } finally {
      machines.endCapture(boxId)
    }
  }

  /** Updates the url file of each box, which running agents re-read: a restarted coordinator may have another URL. */
  async function writeCoordinatorUrls(): Promise<void> {
    for (const { boxId, uid, isolation } of await machines.list()) {
      const { state } = boxPaths(boxesDir, boxId)
      // The isolation of a machine with a damaged file is unknown: assume that of new machines.
      const url = coordinatorUrlFor(isolation?.network ?? choice.network, options.coordinatorUrl)
      await writeAtomically(join(state, 'url'), url, { owner: uid }).catch((err: unknown) =>
        log.warn({ boxId, err }, 'failed to write the coordinator URL for a box'),
      )
    }
  }

  function coordinatorUrlFor(network: Network, url: string): string {
    return network === 'own' && socketDir !== null ? SOCKET_URL : url
  }

  /** The agent reads both files before each connection. After a power loss, the next start writes them again. */
  async function writeConnectionFiles(
    paths: BoxPaths,
    spec: { coordinatorUrl: string; agentToken: string },
    uid: number | null,
  ): Promise<void> {
    await writeAtomically(join(paths.state, 'token'), spec.agentToken, { owner: uid })
    await writeAtomically(join(paths.state, 'url'), spec.coordinatorUrl, { owner: uid })
  }

  async function startMachine(spec: MachineSpec & { agentToken: string }): Promise<{ isolation: Isolation }> {
    const { boxId, hostname, tier } = spec
    const paths = boxPaths(boxesDir, boxId)
    const existing = await machines.load(boxId)
    if (existing === null)
      throw new PermanentProviderError('The machine of the box does not exist. Delete the box.')
    if (existing.init !== null && existing.isolation !== null) {
      // load() may have found an unrecorded init. A durable write would double the time of a thaw.
      if (!isDeepStrictEqual(await readMachine(paths).catch(() => null), existing))
        await writeMachine(paths, existing)
      const coordinatorUrl = coordinatorUrlFor(existing.isolation.network, spec.coordinatorUrl)
      await writeConnectionFiles(paths, { ...spec, coordinatorUrl }, existing.uid)
      // The agent of a frozen machine reads the files when it reconnects.
      machines.thaw(existing)
      return { isolation: existing.isolation }
    }
    const level = requireLevel()
    await machines.stopRemaining(paths, existing)
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
    await linkCompileCache(runtimeDir, uid ?? MAPPED_UID)
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
    const environmentInput = {
      ...{ isNamespaced, network, agentSettings },
      hasOwnUid: uid !== null,
      tierLimits: TIERS[tier],
    }
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
    describe: () => describeIsolation(choice, cgroups, isRoot),

    create: (spec, signal) =>
      runExclusive(spec.boxId, async () => {
        const paths = boxPaths(boxesDir, spec.boxId)
        const level = requireLevel()
        if (spec.source !== undefined && (await machines.load(spec.boxId)) === null)
          await restoreMachine(boxesDir, await createMachine(spec.boxId), spec.source, archives, signal)
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
        const { dir } = boxPaths(boxesDir, boxId)
        const uid = (await machines.load(boxId))?.uid
        const state = await machines.inspect(boxId)
        const isStopped = state === 'stopped' || state === 'absent'
        // After a move, the processes of the box belong to its machine in another region.
        if (!isStopped || !host.isInOtherRegion(boxId, boxesDir)) await machines.stopExisting(boxId)
        await removeTree(dir)
        if (uid != null) await unlinkCompileCache(dirname(runtimeDir), uid)
        if (state !== 'absent') log.debug({ boxId }, 'machine removed')
      }),

    inspect: (boxId) => runExclusive(boxId, () => machines.inspect(boxId)),

    freeze: (boxId) => runExclusive(boxId, () => machines.freeze(boxId)),

    capture: (boxId, archive, contents, signal = new AbortController().signal) =>
      runInTurn(
        (work) => captures.runExclusive(boxId, work),
        signal,
        () => capture(boxId, archive, contents, signal),
      ),
    removeArchive: archives.remove,
    removeArchives: archives.removeAll,
    readArchive: archives.read,
    writeArchive: archives.write,
    holdArchives: archives.hold,

    async close() {
      await archives.close()
      await waitUntilIdle()
      await machines.close()
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
