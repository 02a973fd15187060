// Tickets on each database: they are found by their hash, and deleted in batches after they have expired.
import t from 'tap'
import type { Db } from '../../../../coordinator/db/open.ts'
import type { Actor } from '../../../../coordinator/http/actor.ts'
import { hashSecret } from '../../../../coordinator/http/hash-secret.ts'
import { createTicketFinder } from '../../../../coordinator/identity/tickets/find-ticket.ts'
import { createTicketService } from '../../../../coordinator/identity/tickets/service.ts'
import { newId } from '../../../../shared/ids.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { capturePlans } from '../../../support/query-plan.ts'
import { createOwner, createTestBoxService, createTestClock } from '../../../support/workspace.ts'

const DAY_MS = 24 * 60 * 60_000

async function createSessionActor(db: Db, owner: Actor, expiresAt: number): Promise<Actor> {
  const id = newId('session')
  const { workspaceId, userId } = owner
  if (userId === null) throw new Error('the owner is no user')
  await db
    .insertInto('sessions')
    .values({
      ...{ id, hash: hashSecret(id), workspace_id: workspaceId, user_id: userId },
      ...{ created_at: 0, last_used_at: 0, expires_at: expiresAt },
    })
    .execute()
  return { ...owner, credential: { type: 'session', id, expiresAt } }
}

onEachDatabase(t, async (t, newDb) => {
  const db = await newDb(t)
  const clock = createTestClock()
  const owner = await createOwner(db, clock)
  const boxes = createTestBoxService(db, { clock })
  const { id: boxId } = await boxes.create(owner, { name: 'fig' })
  const session = await createSessionActor(db, owner, clock.now() + 30 * DAY_MS)
  const tickets = createTicketService({ db, clock, boxes })
  const findTicket = createTicketFinder({ db, clock })
  const { signal } = new AbortController()
  const create = async (expiresInSeconds?: number) => {
    const { ticket, secret } = await tickets.create(session, boxId, { expiresInSeconds })
    return {
      expiresAt: Date.parse(ticket.expiresAt),
      id: ticket.id,
      find: () => findTicket(hashSecret(secret)),
    }
  }

  await t.test('a ticket acts as its user on its box until it expires', async (t) => {
    const { id, expiresAt, find } = await create()
    t.equal(expiresAt, clock.now() + 600_000)
    t.match(await find(), {
      actor: {
        credential: { type: 'ticket', id, expiresAt },
        boxIds: [boxId],
        ...{ access: null, workspaceId: owner.workspaceId, userId: owner.userId, role: 'owner' },
      },
    })
    clock.advance(600_000)
    t.match(await find(), { rejected: 'expired', expiresAt })
    t.same(await findTicket(hashSecret('dct_0')), { rejected: 'unknown' })
  })

  await t.test('tickets are deleted a day after their expiry', async (t) => {
    const before = await create(60)
    clock.advance(DAY_MS + 1)
    const after = await create(60)
    t.equal(await tickets.prune(signal), 1, 'the ticket of the previous test')
    t.match(await before.find(), { rejected: 'expired' })
    clock.advance(60_000)
    t.equal(await tickets.prune(signal), 1)
    t.same(await before.find(), { rejected: 'unknown' })
    t.match(await after.find(), { rejected: 'expired' })
  })

  await t.test('the queries use indexes', async (t) => {
    const captured = capturePlans(db)
    await create(60)
    clock.advance(2 * DAY_MS)
    t.equal(await createTicketService({ db: captured.db, clock, boxes }).prune(signal), 2)
    const scans = (await captured.readPlans()).filter((line) => /scan|search/i.test(line))
    t.equal(scans.length, 3)
    for (const line of scans) t.match(line, /(tickets_by_expiry|tickets_pkey|autoindex_tickets)/)
  })
})
