// Machines and archives of an engine, without a coordinator and its agents.
import { randomUUID } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { CONTAINER_PATHS } from '../../../../../coordinator/providers/container/paths.ts'
import { ArchiveImages } from '../../../../../coordinator/providers/docker/archives/archive-images.ts'
import { EngineArchives } from '../../../../../coordinator/providers/docker/archives/archives.ts'
import { MachinePauses } from '../../../../../coordinator/providers/docker/archives/machine-pause.ts'
import type { Engine, EngineKind } from '../../../../../coordinator/providers/docker/engine.ts'
import { createEngineImages } from '../../../../../coordinator/providers/docker/images/images.ts'
import { normalizeReference } from '../../../../../coordinator/providers/docker/images/reference.ts'
import {
  createLabels,
  getContainerName,
  getHomeVolume,
  getStateVolume,
} from '../../../../../coordinator/providers/docker/names.ts'
import { PodmanHttp } from '../../../../../coordinator/providers/docker/podman-http.ts'
import { EngineHttp } from '../../../../../coordinator/providers/engine-http/client.ts'
import { createArchives } from '../../../../../coordinator/providers/parts/archives/archives.ts'
import { BoxQueue } from '../../../../../coordinator/providers/parts/box-queue.ts'
import type { ImageEngine } from '../../../../support/engines/engine.ts'

const log = { debug() {}, info() {}, warn() {} }

export type EngineTest = Awaited<ReturnType<typeof openEngineTest>>

export async function openEngineTest(kind: EngineKind, { socket, dir, command }: ImageEngine) {
  const address = { kind: 'unix', path: socket } as const
  const http =
    kind === 'podman' ? new PodmanHttp(address, { log, graceMs: 0 }) : new EngineHttp(kind, address)
  const engine: Engine = { kind, http, deploymentId: '0123456789abcdef', log }
  const images = createEngineImages(engine, {
    defaultImage: 'debian:12',
    env: { DOCKER_CONFIG: '/nonexistent' },
  })

  async function createMachine(boxId: string, image: string): Promise<void> {
    await engine.http.json({
      method: 'POST',
      path: '/containers/create',
      query: { name: getContainerName(boxId) },
      json: {
        Image: image,
        Cmd: ['/bin/sh', '-c', 'trap exit TERM; while :; do sleep 1; done'],
        Labels: createLabels(engine.deploymentId, 'machine', { boxId }),
        HostConfig: {
          NetworkMode: 'none',
          Mounts: [
            { Type: 'volume', Source: getHomeVolume(boxId), Target: CONTAINER_PATHS.home },
            { Type: 'volume', Source: getStateVolume(boxId), Target: CONTAINER_PATHS.state },
          ],
        },
      },
    })
  }

  async function createVolumes(boxId: string): Promise<void> {
    const Labels = createLabels(engine.deploymentId, 'machine', { boxId })
    for (const Name of [getHomeVolume(boxId), getStateVolume(boxId)])
      await engine.http.json({ method: 'POST', path: '/volumes/create', json: { Name, Labels } })
  }

  return {
    engine,
    images,
    /** Opens the archives as a start of the coordinator does. */
    async openArchives(storeDir = mkdtempSync(join(dir, 'store-')), maxLayers?: number) {
      const queue = new BoxQueue()
      const store = createArchives({ dir: join(storeDir, 'archives'), log, reserveBytes: 0 })
      const archiveImages = new ArchiveImages(engine, images, maxLayers)
      const pauses = new MachinePauses(engine, join(storeDir, 'paused'))
      const archives = new EngineArchives({
        engine,
        store,
        images: archiveImages,
        pauses,
        runExclusive: (boxId, work) => queue.run(boxId, work),
      })
      return { archives, archiveImages, pauses, store, storeDir }
    },
    /** Creates and starts a machine, and returns the id of its box. */
    async startMachine(image: string): Promise<string> {
      const boxId = randomUUID()
      await createVolumes(boxId)
      await createMachine(boxId, image)
      await engine.http.json({ method: 'POST', path: `/containers/${getContainerName(boxId)}/start` })
      return boxId
    },
    /** Creates a machine with the files of an archive, and starts it. */
    async restoreMachine(archives: EngineArchives, archive: Parameters<EngineArchives['restore']>[0]) {
      const boxId = randomUUID()
      await createVolumes(boxId)
      await createMachine(boxId, await archives.restore(archive, boxId))
      await engine.http.json({ method: 'POST', path: `/containers/${getContainerName(boxId)}/start` })
      return boxId
    },
    exec: (boxId: string, script: string): string =>
      command(['exec', getContainerName(boxId), 'sh', '-c', script]),
    async destroyMachine(boxId: string): Promise<void> {
      const query = { force: true, v: true }
      await engine.http.json({ method: 'DELETE', path: `/containers/${getContainerName(boxId)}`, query })
      for (const name of [getHomeVolume(boxId), getStateVolume(boxId)])
        await engine.http.json({ method: 'DELETE', path: `/volumes/${name}` })
    },
    /** What the engine has apart from the images of the registry. */
    async listObjects(): Promise<string[]> {
      const containers = await engine.http.json<{ Names: string[] }[]>({
        method: 'GET',
        path: '/containers/json',
        query: { all: true },
      })
      const { Volumes } = await engine.http.json<{ Volumes: { Name: string }[] | null }>({
        method: 'GET',
        path: '/volumes',
      })
      const found = await engine.http.json<{ RepoTags: string[] | null; Id: string }[]>({
        method: 'GET',
        path: '/images/json',
      })
      return [
        ...containers.map(({ Names }) => Names.join()),
        ...(Volumes ?? []).map(({ Name }) => Name),
        ...found
          .flatMap(({ RepoTags, Id }) => RepoTags ?? [Id])
          .filter((name) => !/library\/(debian|busybox)|^(debian|busybox)|boxwood\/empty/.test(name)),
      ]
    },
    async close() {
      await engine.http.close()
      await rm(join(dir, 'stores'), { recursive: true, force: true })
    },
    normalize: normalizeReference,
  }
}
