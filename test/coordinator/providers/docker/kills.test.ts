// Kills the coordinator after each of its calls to the engine, while it creates, captures, restores and destroys a box.
import { randomUUID } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ArchiveImages } from '../../../../coordinator/providers/docker/archives/archive-images.ts'
import { EngineArchives } from '../../../../coordinator/providers/docker/archives/archives.ts'
import { MachinePauses } from '../../../../coordinator/providers/docker/archives/machine-pause.ts'
import { removeLeftovers } from '../../../../coordinator/providers/docker/leftovers.ts'
import { getContainerName } from '../../../../coordinator/providers/docker/names.ts'
import {
  EngineHttp,
  type EngineRequest,
  type EngineResponse,
} from '../../../../coordinator/providers/engine-http/client.ts'
import { createArchives } from '../../../../coordinator/providers/parts/archives/archives.ts'
import { findDockerProblem, startDocker } from '../../../support/engines/docker.ts'
import type { ImageEngine } from '../../../support/engines/engine.ts'
import { createMachines, createSpec } from './support.ts'

const log = { debug() {}, info() {}, warn() {} }
const ARCHIVE = { workspaceId: 'ws1', archiveId: 'one' }

/** The response of a call, and all later calls, do not reach a process that was killed. */
class MortalHttp extends EngineHttp {
  #remaining: number

  constructor(socket: string, calls: number) {
    super('docker', { kind: 'unix', path: socket })
    this.#remaining = calls
  }

  get isKilled(): boolean {
    return this.#remaining < 0
  }

  override json<T>(request: EngineRequest): Promise<T> {
    return this.#count(() => super.json<T>(request))
  }

  override stream(request: EngineRequest): Promise<EngineResponse> {
    return this.#count(() => super.stream(request))
  }

  async #count<T>(call: () => Promise<T>): Promise<T> {
    if (this.isKilled) throw new Error('killed')
    this.#remaining -= 1
    const result = await call()
    if (!this.isKilled) return result
    await this.close()
    throw new Error('killed')
  }
}

/** What a coordinator opens. */
function openCoordinator({ socket, dir }: { socket: string; dir: string }, calls = Number.POSITIVE_INFINITY) {
  const http = new MortalHttp(socket, calls)
  const engine = { kind: 'docker', http, deploymentId: '0123456789abcdef', log } as const
  const { images, machines } = createMachines(engine)
  const store = createArchives({ dir: join(dir, 'archives'), log, reserveBytes: 0 })
  const pauses = new MachinePauses(engine, join(dir, 'pauses'))
  const archives = new EngineArchives({
    engine,
    store,
    images: new ArchiveImages(engine, images),
    pauses,
    runExclusive: (_, work) => work(),
  })
  return {
    http,
    archives,
    create: (boxId: string) => machines.create(createSpec(boxId)),
    restore: (boxId: string) => machines.create(createSpec(boxId), () => archives.restore(ARCHIVE, boxId)),
    capture: (boxId: string) => archives.capture(boxId, ARCHIVE, 'all'),
    async destroy(boxId: string) {
      await machines.destroy(boxId)
      await removeLeftovers(engine, archives)
    },
    async repair() {
      await pauses.continueAll()
      await removeLeftovers(engine, archives)
    },
    async close() {
      await store.close()
      await http.close()
    },
  }
}

type Coordinator = ReturnType<typeof openCoordinator>

/** Repeats the action with a coordinator that is killed one call later each time, until it is complete. */
async function killInEachCall(
  t: Test,
  host: { socket: string; dir: string },
  {
    prepare,
    act,
    check,
  }: Record<'prepare' | 'act' | 'check', (coordinator: Coordinator) => Promise<unknown>>,
): Promise<void> {
  for (let calls = 0; ; calls++) {
    const before = openCoordinator(host)
    await prepare(before)
    await before.close()
    const killed = openCoordinator(host, calls)
    const isComplete = await act(killed).then(
      () => !killed.http.isKilled,
      () => false,
    )
    await killed.close()
    const next = openCoordinator(host)
    await next.repair()
    await act(next)
    await check(next)
    await next.close()
    if (!isComplete) continue
    t.ok(calls > 3, `${calls} calls`)
    return
  }
}

function listObjects({ command }: ImageEngine): string[] {
  const lists = [
    ['ps', '--all', '--format', '{{.Names}}'],
    ['volume', 'ls', '--format', '{{.Name}}'],
    ['network', 'ls', '--format', '{{.Name}}'],
    ['images', '--all', '--format', '{{.Repository}}:{{.Tag}}'],
  ]
  return lists.flatMap((list) => command(list).split('\n').filter(Boolean)).sort()
}

t.test('kills', { skip: findDockerProblem() ?? false }, async (t) => {
  const engine = await startDocker()
  if ('skip' in engine) return void t.comment(engine.skip)
  t.teardown(() => engine.close())
  const host = { socket: engine.socket, dir: mkdtempSync(join(engine.dir, 'coordinator-')) }
  const first = openCoordinator(host)
  engine.command(['volume', 'create', 'agent'])
  // Creates the image of helper containers too.
  const [template, copy] = [randomUUID(), randomUUID()]
  await first.create(template)
  await first.capture(template)
  await first.restore(copy)
  await first.archives.remove(ARCHIVE)
  for (const id of [template, copy]) await first.destroy(id)
  const empty = listObjects(engine)
  t.notMatch(empty.join(' '), /boxwood-/)
  await first.close()

  let boxId = ''
  const newBox = async () => {
    boxId = randomUUID()
  }
  const destroy = async (coordinator: Coordinator) => {
    await coordinator.destroy(boxId)
    t.strictSame(listObjects(engine), empty)
  }

  await t.test('create', (t) =>
    killInEachCall(t, host, { prepare: newBox, act: (c) => c.create(boxId), check: destroy }),
  )

  await t.test('destroy', (t) =>
    killInEachCall(t, host, {
      async prepare(coordinator) {
        await newBox()
        await coordinator.create(boxId)
      },
      act: (c) => c.destroy(boxId),
      check: async () => t.strictSame(listObjects(engine), empty),
    }),
  )

  await t.test('capture of a running box, whose processes continue', (t) =>
    killInEachCall(t, host, {
      async prepare(coordinator) {
        await newBox()
        await coordinator.create(boxId)
        // Without the files of the agent, the command of the container ends at once.
        engine.command(['rm', getContainerName(boxId)])
        engine.command([
          'run',
          '--detach',
          `--name=${getContainerName(boxId)}`,
          '--label=boxwood.coordinator=0123456789abcdef',
          '--label=boxwood.role=machine',
          `--volume=${getContainerName(boxId)}-home:/root`,
          `--volume=${getContainerName(boxId)}-state:/var/lib/boxwood`,
          'busybox',
          'sleep',
          '3600',
        ])
      },
      act: (c) => c.capture(boxId),
      async check(coordinator) {
        t.equal(
          engine.command(['inspect', '--format={{.State.Status}}', getContainerName(boxId)]),
          'running\n',
        )
        await coordinator.archives.remove(ARCHIVE)
        await destroy(coordinator)
      },
    }),
  )

  await t.test('restore on an engine without the image', async (t) => {
    const source = randomUUID()
    const coordinator = openCoordinator(host)
    await coordinator.create(source)
    await coordinator.capture(source)
    await coordinator.destroy(source)
    const image = 'localhost/boxwood-0123456789abcdef/archive:one'
    await killInEachCall(t, host, {
      async prepare() {
        await newBox()
        engine.command(['rmi', '--force', image])
      },
      act: (c) => c.restore(boxId),
      async check(coordinator) {
        await coordinator.destroy(boxId)
        t.strictSame(listObjects(engine), [...empty, image].sort())
      },
    })
    await coordinator.archives.remove(ARCHIVE)
    t.strictSame(listObjects(engine), empty)
    await coordinator.close()
  })
})
