// The local provider of one region: runs each box as a group of isolated processes on the coordinator's machine.
import { basename } from 'node:path'
import { formatAgentVersion } from '../../../shared/protocol.ts'
import type { Region } from '../../../shared/tiers.ts'
import { createArchives } from '../parts/archives/archives.ts'
import { BoxQueue } from '../parts/box-queue.ts'
import { createSharedDisk } from '../parts/disk-usage.ts'
import { readSpool } from '../parts/read-spool.ts'
import { runInTurn } from '../parts/run-in-turn.ts'
import type { ArchiveContents, Provider } from '../provider.ts'
import { readCapacity } from './capacity.ts'
import { captureMachine, type ReadMachine } from './capture-machine.ts'
import { hasReflinks } from './clone-machine.ts'
import { updateCoordinatorUrls } from './connection-files.ts'
import { createMachine, removeMachine } from './create-machine.ts'
import { describeIsolation } from './describe-isolation.ts'
import { isRoot } from './directories.ts'
import type { LocalHost } from './host.ts'
import { createMachineCopy, removeMachineCopies } from './machine-copies.ts'
import { boxPaths } from './machine-file.ts'
import { chooseMachineUid } from './prepare-machine.ts'
import { createBoxesDir, getArchivesDir, getBoxesDir, getRegionDir } from './region-directories.ts'
import { ARCHIVE_ROOTS, type MachineSource, syncFiles } from './restore-machine.ts'
import { SnapshotClones } from './snapshot-clones.ts'
import { startMachine } from './start-machine.ts'
import { takeMachineOver } from './take-over.ts'
import { createWarmMachine, findWarmProblem } from './warm-machine.ts'

const NAME = 'local'

/** The provider of one region. Closing the provider does not close the host. */
export async function createLocalProvider(host: LocalHost, region: Region): Promise<Provider> {
  const { choice, cgroups, runtimeDir } = host
  const { log, dataDir } = host.options
  const boxesDir = await createBoxesDir(dataDir, region)
  const machines = host.createMachines(boxesDir)
  await machines.continuePaused()
  const archives = createArchives({ dir: getArchivesDir(getRegionDir(dataDir, region)), log })
  await updateCoordinatorUrls(host, boxesDir, await machines.list())
  const capacity = await readCapacity(boxesDir)
  const canClone = await hasReflinks(boxesDir)
  const regionMachines = { host, boxesDir, machines, capacity }
  const queue = new BoxQueue()
  /** The captures of a box run one at a time: the end of a capture continues the processes. */
  const captures = new BoxQueue()

  const readMachine = <Info>(
    boxId: string,
    contents: ArchiveContents,
    signal = new AbortController().signal,
    read: ReadMachine<Info>,
  ): Promise<Info> =>
    runInTurn(
      (work) => captures.run(boxId, work),
      signal,
      () => captureMachine(regionMachines, { boxId, contents, signal, queue, archives, canClone }, read),
    )

  const clones = new SnapshotClones({
    boxesDir,
    archives,
    readMachine: (boxId, signal, read) => readMachine(boxId, 'files', signal, read),
  })

  /** A machine that waits for the box has a user. */
  const chooseCopyUid = async (newBoxId: string | null): Promise<number | null> =>
    (newBoxId && (await machines.load(newBoxId))?.uid) || chooseMachineUid(host)

  return {
    name: NAME,
    canFreeze: cgroups.canFreeze,
    capacity,
    agentVersion: formatAgentVersion(basename(runtimeDir)),
    sharedDisk: createSharedDisk(boxesDir, (boxId) => boxPaths(boxesDir, boxId).dir),
    describe: () => describeIsolation(choice, cgroups, isRoot),

    warm: {
      problem: findWarmProblem(choice),
      create: (boxId, coordinatorUrl, signal) =>
        queue.run(boxId, () => createWarmMachine(regionMachines, boxId, coordinatorUrl, signal)),
    },

    create: ({ boxId, source: key }, signal) =>
      queue.run(boxId, () => {
        const source: MachineSource | null =
          key === undefined ? null : { key, writeFiles: (files) => clones.restore(key, files, signal) }
        return createMachine(regionMachines, boxId, source, signal)
      }),

    takeOver: (boxId, source) =>
      queue.run(boxId, async () => {
        const sourceDir = getBoxesDir(getRegionDir(dataDir, source.region))
        return source.provider.name === NAME && takeMachineOver({ boxId, sourceDir, boxesDir, log })
      }),

    start: (spec) => queue.run(spec.boxId, () => startMachine(regionMachines, spec)),

    stop: (boxId) =>
      queue.run(boxId, async () => {
        if (await machines.stopExisting(boxId)) log.debug({ boxId }, 'machine stopped')
      }),

    destroy: (boxId) => queue.run(boxId, () => removeMachine(regionMachines, boxId)),

    inspect: (boxId) => queue.run(boxId, () => machines.inspect(boxId)),

    readSpool(boxId) {
      let isLogged = false
      return readSpool(boxPaths(boxesDir, boxId).state, (path, problem) => {
        // A box can have many such files.
        if (!isLogged) log.warn({ boxId, path, problem }, 'not all files of the spool of a box can be read')
        isLogged = true
      })
    },

    freeze: (boxId) => queue.run(boxId, () => machines.freeze(boxId)),

    capture: (boxId, archive, contents, signal, onCopied) =>
      onCopied === undefined
        ? readMachine(boxId, contents, signal, (files, options) => archives.capture(files, archive, options))
        : clones.capture(boxId, archive, signal, onCopied),
    copyMachine: (boxId, archive, newBoxId, signal) =>
      readMachine(boxId, 'files', signal, async (files, options) => {
        const uid = await chooseCopyUid(newBoxId)
        const { roots } = files
        return createMachineCopy(boxesDir, uid, {
          key: archive,
          writeFiles: (target) => archives.copyTree(files, { ...target, roots }, options),
        })
      }),
    copyArchive: async (source, archive, newBoxId, signal) => {
      const uid = await chooseCopyUid(newBoxId)
      return createMachineCopy(boxesDir, uid, {
        key: archive,
        async writeFiles(target) {
          const files = { ...target, roots: ARCHIVE_ROOTS.files }
          await archives.restore(source, files, signal, files.roots)
          await syncFiles(files.dir, signal)
          return { contentBytes: await archives.measure(files, signal), pausedMs: null }
        },
      })
    },
    copyFiles: (source, archive, signal) => archives.copy(source, archive, ARCHIVE_ROOTS.files, signal),
    async removeArchive(archive) {
      await clones.remove(archive)
      await archives.remove(archive)
    },
    async removeArchives(workspaceId) {
      await removeMachineCopies(boxesDir, workspaceId)
      await archives.removeAll(workspaceId)
    },
    readArchive: (archive) => archives.read(archive),
    writeArchive: (archive, content, signal) => archives.write(archive, content, signal),
    holdArchives: () => archives.hold(),

    async close() {
      await archives.close()
      await Promise.all([queue.waitUntilIdle(), captures.waitUntilIdle(), clones.waitUntilIdle()])
      await machines.close()
    },
  }
}
