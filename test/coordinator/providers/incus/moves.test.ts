// Moves between members, interrupted at each request to Incus.
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import type { Instance } from '../../../../coordinator/providers/incus/api.ts'
import type { CallOptions, IncusClient } from '../../../../coordinator/providers/incus/client.ts'
import { Instances } from '../../../../coordinator/providers/incus/instances.ts'
import { Moves } from '../../../../coordinator/providers/incus/moves.ts'
import { LABELS } from '../../../../coordinator/providers/incus/names.ts'

const NAME = 'boxwood-1'
const FILES = 'user.files'
const LOG = { warn: () => undefined }

/** Incus with two members. The file contents of an instance are in its configuration. */
class FakeIncus {
  readonly instances = new Map<string, Instance>()
  /** The number of changes until the coordinator is killed. */
  changesLeft = Number.POSITIVE_INFINITY
  /** Whether the change that is interrupted takes effect. */
  completesLast = false

  constructor() {
    const config = {
      [LABELS.coordinator]: 'id',
      [LABELS.role]: 'box',
      [LABELS.box]: '1',
      [LABELS.complete]: NAME,
      [FILES]: 'kept',
    }
    this.#add(NAME, 'node1', config)
  }

  async get(path: string, query: { recursion?: number } = {}): Promise<unknown> {
    if (path === '/instances' && query.recursion === undefined)
      return [...this.instances.keys()].map((name) => `/1.0/instances/${name}?project=default`)
    if (path === '/instances') return [...this.instances.values()]
    return this.#require(path)
  }

  async find(path: string): Promise<Instance | null> {
    return this.instances.get(path.split('/')[2] ?? '') ?? null
  }

  async call(method: string, path: string, { query, json }: CallOptions = {}): Promise<object> {
    await turn()
    this.changesLeft -= 1
    if (this.changesLeft >= 0 || (this.changesLeft === -1 && this.completesLast))
      this.#change(method, path, query?.target as string, json as Instance & { source: { source: string } })
    await turn()
    if (this.changesLeft < 0) throw new Error('the coordinator was killed')
    return {}
  }

  async settle(): Promise<void> {}

  hasUnsettled(): boolean {
    return false
  }

  #change(method: string, path: string, target: string, json: Instance & { source: { source: string } }) {
    if (path === '/instances') return this.#copy(target, json)
    const instance = this.#require(path)
    if (method === 'PATCH')
      this.instances.set(instance.name, { ...instance, config: { ...instance.config, ...json.config } })
    else this.instances.delete(instance.name)
    if (method === 'POST') this.#add(json.name, instance.location, instance.config)
  }

  #copy(target: string, { name, config, source }: Instance & { source: { source: string } }) {
    this.#add(name, target, { ...config, [FILES]: this.#require(`//${source.source}`).config[FILES] ?? '' })
  }

  #add(name: string, location: string, config: Record<string, string>) {
    if (this.instances.has(name)) throw new Error(`${name} exists already`)
    this.instances.set(name, {
      name,
      location,
      config,
      architecture: 'x86_64',
      status: 'Stopped',
      devices: {},
    })
  }

  #require(path: string): Instance {
    const instance = this.instances.get(path.split('/')[2] ?? '')
    if (instance === undefined) throw new Error(`${path} does not exist`)
    return instance
  }
}

/** The coordinator after a start. */
async function start(incus: FakeIncus) {
  const instances = new Instances(incus as unknown as IncusClient, 'id')
  const moves = new Moves(instances, LOG)
  await moves.finishAll()
  await instances.removeIncomplete()
  return { instances, moves }
}

async function move(incus: FakeIncus): Promise<void> {
  const { instances, moves } = await start(incus)
  const instance = await instances.find(NAME)
  if (instance === null) throw new Error('the instance does not exist')
  if (instance.location === 'node2') return
  await moves.move(instance, { query: { target: 'node2' }, config: {} })
}

t.test('a move that is interrupted at any request leaves one instance, with its files', async (t) => {
  let count = 0
  for (let isInterrupted = true; isInterrupted; count += 1) {
    for (const completesLast of [false, true]) {
      const name = `${completesLast ? 'after' : 'before'} change ${count + 1}`
      const incus = new FakeIncus()
      incus.changesLeft = count
      incus.completesLast = completesLast
      isInterrupted = await move(incus).then(
        () => false,
        () => true,
      )
      incus.changesLeft = Number.POSITIVE_INFINITY
      await start(incus)
      const found = [...incus.instances.values()]
      t.equal(found.length, 1, `${name}: one instance`)
      t.match(found[0], { name: NAME, config: { [LABELS.complete]: NAME, [FILES]: 'kept' } }, name)
      await move(incus)
      t.match([...incus.instances.values()], [{ name: NAME, location: 'node2' }], `${name}: the next move`)
    }
  }
  t.ok(count > 5, `${count - 1} changes`)
})

t.test('a region that inspects a box during its move does not end the move', async (t) => {
  const incus = new FakeIncus()
  const { instances, moves } = await start(incus)
  const instance = await instances.find(NAME)
  if (instance === null) throw new Error('the instance does not exist')
  let isMoving = true
  const inspect = async () => {
    while (isMoving) {
      await turn()
      if ((await instances.find(NAME)) === null) await moves.finish(NAME)
      await instances.removeIncomplete()
    }
  }
  const inspections = [inspect(), inspect()]
  await moves.move(instance, { query: { target: 'node2' }, config: {} })
  isMoving = false
  await Promise.all(inspections)
  t.match([...incus.instances.values()], [{ name: NAME, location: 'node2', config: { [FILES]: 'kept' } }])
})
