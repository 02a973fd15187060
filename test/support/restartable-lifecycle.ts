// A lifecycle service that tests can restart without closing it, as after kill -9, on one database and fake provider.
import type { Test } from 'tap'
import {
  createLifecycle,
  type Lifecycle,
  type LifecycleOptions,
} from '../../coordinator/boxes/lifecycle/lifecycle.ts'
import type { BoxService, BoxServiceOptions } from '../../coordinator/boxes/service.ts'
import type { Db } from '../../coordinator/db/open.ts'
import type { Actor } from '../../coordinator/http/actor.ts'
import { serveAllRegions } from '../../coordinator/providers/regions.ts'
import type { BoxDetail, ObservedState } from '../../shared/api/boxes.ts'
import { systemClock } from '../../shared/clock.ts'
import { FakeInfrastructure } from './fake-infrastructure.ts'
import { startOnlyReplica } from './replica.ts'
import { waitUntil } from './wait-until.ts'
import { createOwner, createTestBoxService } from './workspace.ts'

const silentLog = { debug() {}, info() {}, warn() {}, error() {} }

export type RestartableLifecycle = {
  db: Db
  infra: FakeInfrastructure
  owner: Actor
  boxes: BoxService
  /** Starts a new lifecycle service. The previous one is not closed, as after kill -9. */
  startLifecycle(options?: Partial<LifecycleOptions>): Promise<Lifecycle>
  getDetail(id: string): Promise<BoxDetail>
  waitForState(id: string, observed: ObservedState): Promise<BoxDetail>
  /** Waits up to 15 s for the condition. `description` completes "waiting for …". */
  waitFor(description: string, condition: () => boolean | Promise<boolean>): Promise<void>
  /** Returns the observed states of the box, oldest first. */
  listStates(id: string): Promise<string[]>
}

export async function createRestartableLifecycle(
  t: Test,
  db: Db,
  boxOptions: Partial<BoxServiceOptions> = {},
): Promise<RestartableLifecycle> {
  const infra = new FakeInfrastructure()
  const owner = await createOwner(db)
  let current: Lifecycle | undefined
  const boxes = createTestBoxService(db, {
    schedule: (id) => current?.schedule(id),
    isConnected: (id) => !!infra.tunnels.current(id),
    ...boxOptions,
  })

  async function startLifecycle(options: Partial<LifecycleOptions> = {}): Promise<Lifecycle> {
    current = createLifecycle({
      replica: options.replica ?? (await startOnlyReplica(db)),
      db,
      clock: systemClock,
      log: silentLog as unknown as LifecycleOptions['log'],
      providers: serveAllRegions(infra.provider),
      tunnels: infra.tunnels,
      ingest: { apply: async () => undefined },
      coordinatorUrl: 'http://127.0.0.1:7070',
      connectTimeoutMs: 5_000,
      agentReconnectMs: 0,
      disconnectGraceMs: 30,
      backoff: () => 1,
      ...options,
    })
    await current.start()
    return current
  }

  async function waitFor(description: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    await waitUntil(`the wait for ${description} ends`, condition)
  }

  const getDetail = (id: string) => boxes.get(owner, id)

  async function waitForState(id: string, observed: ObservedState): Promise<BoxDetail> {
    await waitFor(`box ${id} to become ${observed}`, async () => {
      const { box, job } = await getDetail(id)
      return box.observedState === observed && job === null
    })
    return getDetail(id)
  }

  const listStates = async (id: string) =>
    (await getDetail(id)).events.map((event) => event.toState).reverse()
  t.teardown(() => current?.close())
  return { db, infra, owner, boxes, startLifecycle, getDetail, waitForState, waitFor, listStates }
}
