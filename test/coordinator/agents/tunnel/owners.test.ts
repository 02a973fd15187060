// Which coordinator has the tunnel of a box, after one of them has lost its lease.
import { randomUUID } from 'node:crypto'
import { EventEmitter } from 'node:events'
import t, { type Test } from 'tap'
import { createTunnelOwners } from '../../../../coordinator/agents/tunnel/owners/owners.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import type { ReplicaEvents } from '../../../../coordinator/replicas/replica.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { addReplica } from '../../../support/replica.ts'
import { silentLog } from '../../../support/tunnel.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const HOUR_MS = 60 * 60_000

async function start(t: Test, db: Db, id: string) {
  await addReplica(db, id, HOUR_MS)
  const replica = { id, isLeaseValid: true, events: new EventEmitter<ReplicaEvents>() }
  const owners = createTunnelOwners({ db, replica, log: silentLog })
  t.teardown(() => owners.close())
  await owners.start()
  return { replica, owners }
}

await onEachDatabase(t, async (t, newDb) => {
  await t.test('a tunnel that has closed without a lease is released with the next one', async (t) => {
    const db = await newDb(t)
    const first = await start(t, db, 'rep_first')
    const second = await start(t, db, 'rep_second')
    const boxId = randomUUID()
    const agent = { boxId, agentVersion: '1', protocolVersion: 1, failedBuild: null, platform: null }
    const generation = await first.owners.claim({ ...agent, instanceId: 'one' })
    t.equal(await second.owners.claim({ ...agent, instanceId: 'two' }), null, 'another process')
    first.replica.isLeaseValid = false
    if (generation !== null) first.owners.release(boxId, generation)
    first.replica.isLeaseValid = true
    first.replica.events.emit('regained')
    await waitUntil('the agent of another process can connect elsewhere', () =>
      second.owners.claim({ ...agent, instanceId: 'two' }),
    )
    first.replica.events.emit('regained')
    t.equal(await first.owners.claim({ ...agent, instanceId: 'three' }), null, 'that tunnel remains')
  })
})
