// The providers that the end-to-end tests, the chaos test and the benchmark use, each with an engine of its own.
import { chmodSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { probeCgroups } from '../../../coordinator/providers/local/cgroups.ts'
import type { ProviderKind } from '../../../coordinator/providers/settings.ts'
import type { Region } from '../../../shared/tiers.ts'
import { INIT, packIncusImage } from './busybox-tree.ts'
import { findDockerProblem, startDocker } from './docker.ts'
import type { Engine } from './engine.ts'
import { buildEngineImages, unpackImage } from './images.ts'
import { findIncusProblem, startIncusd } from './incus.ts'
import { findPodmanProblem, startPodman } from './podman.ts'
import { listEngineObjects } from './remains.ts'

export type StartedProvider = {
  kind: ProviderKind
  /** The region of this provider. All other regions are local. */
  region: Region
  /** For the coordinator. */
  env: Record<string, string>
  /** An image with apt-get, in which `apt-get install boxwood-sample` works. null: the region has no images. */
  image: string | null
  /** An image that contains only busybox. */
  smallImage: string | null
  canFreeze: boolean
  /** Whether processes continue through a resize. */
  resizesLive: boolean
  /** null: the local provider. */
  engine: Engine | null
  /** The names of the machines that the engine has. */
  listMachines(): Promise<string[]>
  /** What the engine has of boxes and archives, each as a line. */
  listRemains(): Promise<string[]>
  /** Prepares the data directory of a coordinator. */
  prepareData(dir: string): void
  close(): Promise<void>
}

export type TestProvider = {
  name: string
  /** Resolves with a reason when this machine cannot have the engine. */
  start(): Promise<StartedProvider | { skip: string }>
}

/** Not the default region, which stays local. */
const ENGINE_REGION = 'us-east-1'

const LOCAL: TestProvider = {
  name: 'local',
  start: async () => ({
    kind: 'local',
    region: 'us-west-2',
    env: {},
    image: null,
    smallImage: null,
    canFreeze: (await probeCgroups()).canFreeze,
    resizesLive: false,
    engine: null,
    listMachines: async () => [],
    listRemains: async () => [],
    prepareData: () => undefined,
    close: async () => undefined,
  }),
}

/** Docker and Podman. */
function createContainerProvider(
  name: string,
  kind: 'docker' | 'podman',
  {
    findProblem,
    startEngine,
    canFreeze,
  }: {
    findProblem: () => string | undefined
    startEngine: () => ReturnType<typeof startDocker>
    canFreeze: boolean
  },
): TestProvider {
  return {
    name,
    async start() {
      const problem = findProblem()
      if (problem !== undefined) return { skip: problem }
      const engine = await startEngine()
      if ('skip' in engine) return engine
      return {
        kind,
        region: ENGINE_REGION,
        env: { BOXWOOD_REGIONS: `us-west-2=local,${ENGINE_REGION}=${kind}`, ...engine.env },
        image: 'debian:12',
        smallImage: 'busybox',
        canFreeze,
        resizesLive: canFreeze,
        engine,
        listMachines: async () =>
          (await listEngineObjects(engine.socket)).filter((name) => name.startsWith('container ')),
        listRemains: () => listEngineObjects(engine.socket),
        // The containers of an ordinary user reach the socket of the coordinator in the directory.
        prepareData: (dir) => chmodSync(dir, 0o711),
        close: engine.close,
      }
    },
  }
}

const INCUS: TestProvider = {
  name: 'incus',
  async start() {
    const problem = findIncusProblem()
    if (problem !== undefined) return { skip: problem }
    const images = await buildEngineImages()
    if ('skip' in images) return images
    const incusd = await startIncusd()
    /** What was created for boxes: the files of the agent are in volumes of their own. */
    const listIncus = (command: string[]) =>
      incusd
        .incus([...command, '--format=csv', '--columns=n'])
        .split('\n')
        .filter((name) => name.startsWith('boxwood-') && !name.startsWith('boxwood-agent'))
    const tree = join(incusd.dir, 'debian')
    mkdirSync(tree)
    unpackImage(images.debian, tree, { init: INIT })
    packIncusImage(tree, join(incusd.dir, 'debian.tar'))
    incusd.incus(['image', 'import', join(incusd.dir, 'debian.tar'), '--alias', 'debian/12', '--quiet'])
    return {
      kind: 'incus',
      region: ENGINE_REGION,
      env: { BOXWOOD_REGIONS: `us-west-2=local,${ENGINE_REGION}=incus`, BOXWOOD_INCUS: incusd.socket },
      image: 'debian/12',
      smallImage: 'busybox',
      canFreeze: true,
      resizesLive: true,
      engine: {
        socket: incusd.socket,
        env: { BOXWOOD_INCUS: incusd.socket },
        dir: incusd.dir,
        command: incusd.incus,
        runInside: incusd.runInside,
        kill: incusd.kill,
        start: incusd.start,
        close: incusd.close,
      },
      listMachines: async () => listIncus(['list']).filter((name) => !name.startsWith('boxwood-a-')),
      listRemains: async () => [
        ...listIncus(['list']),
        ...listIncus(['storage', 'volume', 'list', 'default']),
      ],
      prepareData: (dir) => chmodSync(dir, 0o711),
      close: incusd.close,
    }
  },
}

export const TEST_PROVIDERS = {
  local: LOCAL,
  docker: createContainerProvider('docker', 'docker', {
    findProblem: findDockerProblem,
    startEngine: startDocker,
    canFreeze: true,
  }),
  podman: createContainerProvider('podman', 'podman', {
    findProblem: () => findPodmanProblem('root'),
    startEngine: () => startPodman('root'),
    canFreeze: true,
  }),
  'podman-rootless': createContainerProvider('podman-rootless', 'podman', {
    findProblem: () => findPodmanProblem('ordinary'),
    startEngine: () => startPodman('ordinary'),
    // Containers of an ordinary user have no cgroup of their own with cgroup v1, so they cannot be paused.
    canFreeze: existsSync('/sys/fs/cgroup/cgroup.controllers'),
  }),
  incus: INCUS,
} satisfies Record<string, TestProvider>

export type TestProviderName = keyof typeof TEST_PROVIDERS
