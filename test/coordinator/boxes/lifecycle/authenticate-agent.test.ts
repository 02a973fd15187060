// Authentication of agents with the token of their box.
import t from 'tap'
import { createAgentAuthenticator } from '../../../../coordinator/boxes/lifecycle/authenticate-agent.ts'
import { openDatabase } from '../../../../coordinator/db/open.ts'
import { hashSecret } from '../../../../coordinator/http/hash-secret.ts'
import { createMachineAgents } from '../../../../coordinator/machines/machine-agents.ts'
import { newUuid } from '../../../../shared/ids.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { createRestartableLifecycle } from '../../../support/restartable-lifecycle.ts'
import { databaseFile } from '../../../support/sqlite.ts'

onEachDatabase(t, async (t, newDb) => {
  t.test('accepts a token only for its own box, from its first start until deletion', async (t) => {
    const lifecycle = await createRestartableLifecycle(t, await newDb(t))
    const { db, infra, owner, boxes, startLifecycle, waitForState } = lifecycle
    const authenticate = createAgentAuthenticator(db)
    const [box, otherBox] = [await boxes.create(owner, {}), await boxes.create(owner, {})]
    t.equal(await authenticate(box.id, ''), null)
    await startLifecycle()
    await waitForState(box.id, 'running')
    await waitForState(otherBox.id, 'running')
    const tokenHash = hashSecret(infra.machines.get(box.id)?.token ?? '')
    t.equal(await authenticate(box.id, tokenHash), owner.workspaceId)
    t.equal(await authenticate(otherBox.id, tokenHash), null)
    t.equal(await authenticate(newUuid(), tokenHash), null)
    t.equal(await authenticate(box.id, hashSecret('bxt_other')), null)
    await boxes.remove(owner, box.id)
    await waitForState(box.id, 'terminated')
    t.equal(await authenticate(box.id, tokenHash), null)
    t.equal(infra.tunnels.current(box.id), undefined)
  })

  t.test('each start of a machine replaces the token and closes older connections', async (t) => {
    const lifecycle = await createRestartableLifecycle(t, await newDb(t))
    const { db, infra, owner, boxes, startLifecycle, waitForState } = lifecycle
    const authenticate = createAgentAuthenticator(db)
    const { id } = await boxes.create(owner, {})
    const readTokenHash = () => hashSecret(infra.machines.get(id)?.token ?? '')
    await startLifecycle()
    await waitForState(id, 'running')
    const oldHash = readTokenHash()
    await boxes.suspend(owner, id)
    await waitForState(id, 'suspended')
    // A copy of the token is used on another machine.
    infra.connectAgent(id)
    const foreign = infra.tunnels.current(id)
    await boxes.wake(owner, id)
    await waitForState(id, 'running')
    t.equal(await authenticate(id, oldHash), null)
    t.equal(await authenticate(id, readTokenHash()), owner.workspaceId)
    t.not(infra.tunnels.current(id), foreign)
  })
})

t.test('agents with unknown tokens cause few queries, and keep no other agent out', async (t) => {
  let queries = 0
  const observer = {
    onQuery: () => {
      queries += 1
    },
    onAcquire: () => undefined,
    onTransaction: () => undefined,
  }
  const db = await openDatabase({ kind: 'sqlite', file: databaseFile(t), observer })
  t.teardown(() => db.destroy())
  const lifecycle = await createRestartableLifecycle(t, db)
  const { id } = await lifecycle.boxes.create(lifecycle.owner, {})
  await lifecycle.startLifecycle()
  await lifecycle.waitForState(id, 'running')
  const tokenHash = hashSecret(lifecycle.infra.machines.get(id)?.token ?? '')
  const authenticate = createAgentAuthenticator(db)
  const { isDeleted } = createMachineAgents(db)
  queries = 0
  const results = Promise.all(
    Array.from({ length: 5000 }, async () => {
      const boxId = newUuid()
      return (await authenticate(boxId, tokenHash)) || isDeleted(boxId, tokenHash)
    }),
  )
  t.equal(await authenticate(id, tokenHash), lifecycle.owner.workspaceId)
  t.notOk((await results).includes(true))
  t.ok(queries < 1000, `${queries} queries`)
})
