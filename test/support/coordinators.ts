// Lives of a coordinator on one database and one fake world: started, given up, started again.
import type { Test } from 'tap'
import type { BoxService } from '../../coordinator/boxes/service.ts'
import type { Db } from '../../coordinator/db/open.ts'
import type { Actor } from '../../coordinator/http/actor.ts'
import {
  createLifecycle,
  type Lifecycle,
  type LifecycleOptions,
} from '../../coordinator/lifecycle/lifecycle.ts'
import type { BoxDetail, ObservedState } from '../../shared/api/boxes.ts'
import { systemClock } from '../../shared/clock.ts'
import { FakeWorld } from './fake-provider.ts'
import { boxesOf, ownerOf } from './workspace.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {} }

export type Setting = {
  db: Db
  world: FakeWorld
  owner: Actor
  boxes: BoxService
  /** Replaces the coordinator that lives: it is not closed, as kill -9 would not. */
  newLife(options?: Partial<LifecycleOptions>): Promise<Lifecycle>
  detail(id: string): Promise<BoxDetail>
  until(id: string, observed: ObservedState): Promise<BoxDetail>
  /** Waits for a condition, with a deadline. */
  wait(what: string, condition: () => boolean | Promise<boolean>): Promise<void>
  /** The states the box went through, oldest first. */
  states(id: string): Promise<string[]>
}

export async function setUp(t: Test, db: Db): Promise<Setting> {
  const world = new FakeWorld()
  const owner = await ownerOf(db)
  let current: Lifecycle | undefined
  const boxes = boxesOf(db, {
    poke: (id) => current?.poke(id),
    connected: (id) => !!world.tunnels.current(id),
  })

  async function newLife(options: Partial<LifecycleOptions> = {}): Promise<Lifecycle> {
    current = createLifecycle({
      db,
      clock: systemClock,
      log: silent as unknown as LifecycleOptions['log'],
      provider: world.provider,
      tunnels: world.tunnels,
      coordinatorUrl: 'http://127.0.0.1:7070',
      connectMs: 5_000,
      lostMs: 30,
      leaseMs: 2_000,
      backoff: () => 1,
      ...options,
    })
    await current.start()
    return current
  }

  async function wait(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    const deadline = performance.now() + 15_000
    while (!(await condition())) {
      if (performance.now() > deadline) throw new Error(`Not within 15 s: ${what}`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  const detail = (id: string) => boxes.get(owner, id)

  async function until(id: string, observed: ObservedState): Promise<BoxDetail> {
    await wait(`${id} ${observed}`, async () => {
      const { box, job } = await detail(id)
      return box.observedState === observed && job === null
    })
    return detail(id)
  }

  const states = async (id: string) => (await detail(id)).events.map((event) => event.toState).reverse()
  t.teardown(() => current?.close())
  return { db, world, owner, boxes, newLife, detail, until, wait, states }
}
