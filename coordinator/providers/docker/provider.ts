// The provider of all regions of one engine: runs each box as a container.
import { formatAgentVersion } from '../../../shared/protocol.ts'
import { BoxQueue } from '../local/box-queue.ts'
import type { Provider } from '../provider.ts'
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
  /** The build with which boxes start their agents. */
  buildId: string
}

export function createEngineProvider(options: EngineProviderOptions): Provider {
  const { engine, state, images, machines, buildId } = options
  /** The calls for a box run one at a time. */
  const queue = new BoxQueue()
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
      queue.run(spec.boxId, () => machines.create(spec, undefined, signal)),
    start: (spec) => queue.run(spec.boxId, () => machines.start(spec)),
    resize: (spec) => queue.run(spec.boxId, () => machines.resize(spec)),
    stop: (boxId) => queue.run(boxId, () => machines.stop(boxId)),
    destroy: (boxId) => queue.run(boxId, () => machines.destroy(boxId)),
    inspect: (boxId) => queue.run(boxId, () => machines.inspect(boxId)),
    freeze: (boxId) => queue.run(boxId, () => machines.freeze(boxId)),
    // The regions of an engine share its machines.
    takeOver: async (_, source) => source.provider === provider,

    capture: async () => notAvailable(),
    copyFiles: async () => notAvailable(),
    removeArchive: async () => undefined,
    removeArchives: async () => undefined,
    readArchive: () => notAvailable(),
    writeArchive: async () => notAvailable(),

    close: () => queue.waitUntilIdle(),
  }
  return provider
}

function notAvailable(): never {
  throw new Error('not available')
}
