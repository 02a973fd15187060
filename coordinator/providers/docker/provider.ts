// The provider of all regions of one engine: runs each box as a container.
import { formatAgentVersion } from '../../../shared/protocol.ts'
import type { Archives } from '../parts/archives/archives.ts'
import { BoxQueue } from '../parts/box-queue.ts'
import { runInTurn } from '../parts/run-in-turn.ts'
import type { Provider } from '../provider.ts'
import type { EngineArchives } from './archives/archives.ts'
import type { MachinePauses } from './archives/machine-pause.ts'
import { describeEngine } from './describe-engine.ts'
import { createEngineDisk } from './disk.ts'
import type { Engine } from './engine.ts'
import type { EngineState } from './engine-state.ts'
import type { EngineImages } from './images/images.ts'
import type { EngineMachines } from './machines.ts'
import { readEngineSpool } from './read-spool.ts'

export type EngineProviderOptions = {
  engine: Engine
  state: EngineState
  images: EngineImages
  machines: EngineMachines
  /** The store of the archives. Closing the provider closes it. */
  store: Archives
  archives: EngineArchives
  pauses: Pick<MachinePauses, 'forget'>
  /** The calls for a box run one at a time. */
  queue: BoxQueue
  /** The build with which boxes start their agents. */
  buildId: string
}

export function createEngineProvider(options: EngineProviderOptions): Provider {
  const { engine, state, images, machines, store, archives, pauses, queue, buildId } = options
  /** The captures of a box run one at a time: the end of a capture continues the processes. */
  const captures = new BoxQueue()
  const provider: Provider = {
    name: engine.kind,
    hasRoot: true,
    images,
    agentVersion: formatAgentVersion(buildId),
    get canFreeze() {
      return state.latest?.canFreeze ?? true
    },
    // A Provider without a capacity has machines of the sizes of the tiers.
    get capacity() {
      return state.latest?.capacity
    },
    sharedDisk: createEngineDisk(engine, () => state.latest?.rootDir ?? null),
    describe: () => describeEngine(engine, state),

    create: ({ source, ...spec }, signal) =>
      queue.run(spec.boxId, () => {
        const restore = source && (() => archives.restore(source, spec.boxId, signal))
        return machines.create(spec, restore, signal)
      }),
    start: (spec) =>
      queue.run(spec.boxId, async () => {
        const info = await machines.start(spec)
        await pauses.forget(spec.boxId)
        return info
      }),
    resize: (spec) => queue.run(spec.boxId, () => machines.resize(spec)),
    stop: (boxId) => queue.run(boxId, () => machines.stop(boxId)),
    destroy: (boxId) =>
      queue.run(boxId, async () => {
        const imageId = await machines.destroy(boxId)
        // The box may have been the last one that used the image of a removed archive.
        await archives.removeImagesOf(imageId)
      }),
    inspect: (boxId) => queue.run(boxId, () => machines.inspect(boxId)),
    readSpool(boxId) {
      let isLogged = false
      return readEngineSpool(engine, boxId, (path, problem) => {
        // A box can have many such files.
        if (!isLogged)
          engine.log.warn({ boxId, path, problem }, 'not all files of the spool of a box can be read')
        isLogged = true
      })
    },
    freeze: (boxId) =>
      queue.run(boxId, async () => {
        await pauses.forget(boxId)
        return machines.freeze(boxId)
      }),
    // The regions of an engine share its machines.
    takeOver: async (_, source) => source.provider === provider,

    capture: (boxId, archive, contents, signal = new AbortController().signal) =>
      runInTurn(
        (work) => captures.run(boxId, work),
        signal,
        () => archives.capture(boxId, archive, contents, signal),
      ),
    copyFiles: (source, archive, signal) => archives.copyFiles(source, archive, signal),
    removeArchive: (archive) => archives.remove(archive),
    removeArchives: (workspaceId) => archives.removeAll(workspaceId),
    readArchive: (archive) => archives.read(archive),
    writeArchive: (archive, content, signal) => archives.write(archive, content, signal),
    holdArchives: () => store.hold(),

    async close() {
      await store.close()
      await captures.waitUntilIdle()
      await queue.waitUntilIdle()
    },
  }
  return provider
}
