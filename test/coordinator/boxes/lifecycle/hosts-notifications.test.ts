// Two hosts as they run: each coordinator has a connection, a lease and machines of its own, and learns of the other one from the
// database.
import t, { type Test } from 'tap'
import { createLifecycle, type LifecycleOptions } from '../../../../coordinator/boxes/lifecycle/lifecycle.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import { serveAllRegions } from '../../../../coordinator/providers/regions.ts'
import { registerSharedReplica } from '../../../../coordinator/replicas/replica.ts'
import type { ObservedState } from '../../../../shared/api/boxes.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { FakeInfrastructure } from '../../../support/fake-infrastructure.ts'
import { openPair, startSharedPostgres } from '../../../support/shared-databases.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createOwner, createTestBoxService } from '../../../support/workspace.ts'

const silentLog = { debug() {}, info() {}, warn() {}, error() {} }
const postgres = await startSharedPostgres(t)

async function startHost(t: Test, db: Db, host: string, infra: FakeInfrastructure) {
  const replica = await registerSharedReplica({
    ...{ db, host, log: silentLog, url: 'http://127.0.0.1:1', name: host, settings: {} },
    renewEveryMs: 20,
  })
  const lifecycle = createLifecycle({
    ...{ db, replica, clock: systemClock, tunnels: infra.tunnels },
    log: silentLog as unknown as LifecycleOptions['log'],
    providers: serveAllRegions(infra.provider),
    ingest: { apply: async () => undefined },
    coordinatorUrl: 'http://127.0.0.1:7070',
    agentReconnectMs: 0,
    disconnectGraceMs: 0,
    backoff: () => 1,
  })
  await lifecycle.start()
  const close = async () => {
    await lifecycle.close()
    await replica.close()
  }
  t.teardown(close)
  return { boxes: createTestBoxService(db, { host, schedule: lifecycle.schedule }), close }
}

t.test(
  'a request to one host is done by the other one, which stops and returns',
  { skip: postgres.skip },
  async (t) => {
    const [first, second] = await openPair(t, await postgres.newDatabase())
    const owner = await createOwner(first)
    const [infraA, infraB] = [new FakeInfrastructure(), new FakeInfrastructure()]
    const a = await startHost(t, first, 'hst_a', infraA)
    const b = await startHost(t, second, 'hst_b', infraB)
    const { id } = await a.boxes.create(owner, {})
    const waitForState = (observed: ObservedState) =>
      waitUntil(`the box is ${observed}`, async () => {
        const { box, job } = await b.boxes.get(owner, id)
        return box.observedState === observed && (job === null || observed === 'degraded')
      })
    await waitForState('running')
    await b.boxes.suspend(owner, id)
    await waitForState('suspended')
    await b.boxes.wake(owner, id)
    await waitForState('running')
    await a.close()
    await waitForState('degraded')
    await startHost(t, first, 'hst_a', infraA)
    await waitForState('running')
    await b.boxes.remove(owner, id)
    await waitForState('terminated')
    t.equal(infraA.machines.size, 0)
    t.same(infraB.calls, [])
  },
)
