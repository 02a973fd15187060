// The provider of all regions of one engine: runs each box as a container.
import { formatAgentVersion } from '../../../shared/protocol.ts'
import type { Archives } from '../local/archives/archives.ts'
import { BoxQueue } from '../local/box-queue.ts'
import { runInTurn } from '../local/run-in-turn.ts'
import type { Provider } from '../provider.ts'
import { ArchiveImages } from './archives/archive-images.ts'
import { EngineArchives } from './archives/archives.ts'
import type { MachinePauses } from './archives/machine-pause.ts'
import { describeEngine } from './describe-engine.ts'
import type { Engine } from './engine.ts'
import type { EngineState } from './engine-state.ts'
import type { EngineImages } from './images/images.ts'
import type { EngineMachines } from './machines.ts'

export type EngineProviderOptions = {
  engine: Engine
  state: EngineState
  images: EngineImages
  machines: EngineMachines
  /** The archive store. Closing the provider closes it. */
  store: Archives
  pauses: MachinePauses
  /** The build with which boxes start their agents. */
  buildId: string
}

export function createEngineProvider(options: EngineProviderOptions): Provider {
  const { engine, state, images, machines, store, pauses, buildId } = options
  /** The calls for a box run one at a time. */
  const queue = new BoxQueue()
  /** The captures of a box run one at a time: the end of a capture continues the processes. */
  const captures = new BoxQueue()
  const archives = new EngineArchives({
    engine,
    store,
    images: new ArchiveImages(engine, images),
    pauses,
    runExclusive: (boxId, work) => queue.run(boxId, work),
  })
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
    describe: () => describeEngine(engine, state),

    create: ({ source, ...spec }, signal) =>
      queue.run(spec.boxId, () => {
        const restore = source && (() => archives.restore(source, spec.boxId, signal))
        return machines.create(spec, restore, signal)
      }),
    start: (spec) => queue.run(spec.boxId, () => machines.start(spec)),
    resize: (spec) => queue.run(spec.boxId, () => machines.resize(spec)),
    stop: (boxId) => queue.run(boxId, () => machines.stop(boxId)),
    destroy: (boxId) =>
      queue.run(boxId, async () => {
        await machines.destroy(boxId)
        // The box may have been the last one that used the image of a removed archive.
        await archives.removeUnusedImages()
      }),
    inspect: (boxId) => queue.run(boxId, () => machines.inspect(boxId)),
    freeze: (boxId) => queue.run(boxId, () => machines.freeze(boxId)),
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
