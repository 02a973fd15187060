// The provider of a region whose boxes are containers of an Incus server, or of a member or group of an Incus cluster.
import type { Isolation } from '../../../shared/api/boxes.ts'
import { formatAgentVersion } from '../../../shared/protocol.ts'
import type { Region } from '../../../shared/tiers.ts'
import { describeAddress } from '../engine-http/address.ts'
import { BoxQueue } from '../parts/box-queue.ts'
import type { Provider, SharedDisk } from '../provider.ts'
import type { PoolResources } from './api.ts'
import { IncusArchives } from './archives.ts'
import { InstanceFiles } from './files.ts'
import { createIncusImages } from './images.ts'
import type { IncusHost } from './incus-host.ts'
import { PATHS } from './machine.ts'
import { IncusMachines, PROVIDER_NAME } from './machines.ts'
import { parseInstanceName } from './names.ts'
import { Placement } from './placement.ts'
import { readSpool } from './read-spool.ts'
import { updateBoxes } from './update-boxes.ts'

const ISOLATION: Isolation = { level: 'container', limits: ['cpu', 'memory', 'pids'], network: 'own' }

/** @param target a member of the cluster, or `@` and a group; null: Incus places the boxes */
export function createIncusProvider(host: IncusHost, region: Region, target: string | null): Provider {
  const { client, instances, options } = host
  const queue = new BoxQueue()
  const placement = new Placement(client, target)
  const images = createIncusImages({
    client,
    defaultImage: options.defaultImage,
    ...(options.imageServer !== undefined && { server: options.imageServer }),
  })
  const getServer = () => host.getServer()
  const archives = new IncusArchives({ client, instances, region, placement, getServer })
  const machines = new IncusMachines({ host, region, placement, images, archives })
  const run = <T>(boxId: string, work: () => Promise<T>) => queue.run(boxId, work)
  host.onConnect((server) => updateBoxes({ host, region, server, run }))

  host.onReboot((name) => {
    const boxId = parseInstanceName(name)
    if (boxId === null) return
    run(boxId, () => machines.continueAfterReboot(boxId)).catch((err: unknown) =>
      options.log.warn({ boxId, err }, 'failed to start the agent of a box that has rebooted'),
    )
  })

  return {
    name: PROVIDER_NAME,
    archiveFormat: 'incus',
    hasRoot: true,
    canFreeze: true,
    images,
    agentVersion: formatAgentVersion(options.agentFiles.buildId),
    sharedDisk: createSharedDisk(host, machines, placement),
    describe: () =>
      `Boxes of Incus at ${describeAddress(options.address)} are unprivileged containers, ${host.protections.describe()}`,

    create: (spec, signal) =>
      run(spec.boxId, async () => {
        const fingerprint = await machines.create(spec, signal)
        return { isolation: ISOLATION, imageDigest: fingerprint === null ? null : `sha256:${fingerprint}` }
      }),
    start: (spec) =>
      run(spec.boxId, async () => {
        await machines.start(spec)
        return { isolation: ISOLATION }
      }),
    resize: (spec) => run(spec.boxId, () => machines.resize(spec)),
    stop: (boxId) => run(boxId, () => machines.stop(boxId)),
    destroy: (boxId) => run(boxId, () => machines.destroy(boxId)),
    inspect: (boxId) => run(boxId, () => machines.inspect(boxId)),
    freeze: (boxId) => run(boxId, () => machines.freeze(boxId)),
    takeOver: (boxId, source) => run(boxId, () => machines.takeOver(boxId, source.provider)),

    async *readSpool(boxId) {
      const instance = await machines.find(boxId)
      if (instance === null) return
      let isLogged = false
      yield* readSpool(new InstanceFiles(client, instance.name), PATHS.state, (path, problem) => {
        // A box can have many such files.
        const fields = { boxId, path, problem }
        if (!isLogged) options.log.warn(fields, 'not all files of the spool of a box can be read')
        isLogged = true
      })
    },

    capture: (boxId, archive, contents, signal) =>
      run(boxId, async () => archives.capture(await machines.require(boxId), archive, contents, signal)),
    copyFiles: (source, archive, signal) => archives.copyFiles(source, archive, signal),
    removeArchive: (archive) => archives.remove(archive),
    removeArchives: (workspaceId) => archives.removeAll(workspaceId),
    readArchive: (archive) => archives.read(archive),
    writeArchive: (archive, content, signal) => archives.write(archive, content, signal),

    close: () => queue.waitUntilIdle(),
  }
}

/** The pool, which limits the disk of each box. Boxes have as many files as they have space for. */
const createSharedDisk = (host: IncusHost, machines: IncusMachines, placement: Placement): SharedDisk => ({
  fileSystem: `incus ${describeAddress(host.options.address)} ${placement.target ?? ''}`,
  measure: async (boxId, signal) => ({ bytes: await machines.measure(boxId, signal), inodes: 0 }),
  async readSpace() {
    const server = await host.getServer()
    // The pool of a group is that of the member that answers.
    const query = placement.target?.startsWith('@') ? {} : placement.getQuery(server)
    const path = `/storage-pools/${encodeURIComponent(server.pool.name)}/resources`
    const { space } = await host.client.get<PoolResources>(path, query)
    return { bytes: { free: space.total - space.used, total: space.total }, inodes: null }
  },
})
