// Sign-in and sessions on both databases: what is stored and deleted, and that queries use indexes.
import t from 'tap'
import { type BackgroundTasks, createBackgroundTasks } from '../../../../coordinator/base/background-tasks.ts'
import { newMasterKey } from '../../../../coordinator/base/sealing/master-key.ts'
import { createKeyring } from '../../../../coordinator/base/sealing/master-keyring.ts'
import { hasUnrestrictedBoxes } from '../../../../coordinator/boxes/lookups.ts'
import { createRestrictBoxesOf } from '../../../../coordinator/boxes/restrict-boxes.ts'
import type { Db } from '../../../../coordinator/db/open.ts'
import type { UserRow } from '../../../../coordinator/db/schema.ts'
import { subscribeToAccessChanges } from '../../../../coordinator/http/access-changes.ts'
import { hashSecret } from '../../../../coordinator/http/hash-secret.ts'
import { createMemberService } from '../../../../coordinator/identity/members/service.ts'
import { createSessionFinder } from '../../../../coordinator/identity/sessions/find-session.ts'
import { createOwnerSecret } from '../../../../coordinator/identity/sessions/owner-secret.ts'
import { createSessions } from '../../../../coordinator/identity/sessions/sessions.ts'
import type { Client } from '../../../../coordinator/identity/sessions/start-session.ts'
import { createAgentAccounts } from '../../../../coordinator/identity/sign-up/agent-accounts.ts'
import { newId } from '../../../../shared/ids.ts'
import { onEachDatabase } from '../../../support/db.ts'
import { capturePlans } from '../../../support/query-plan.ts'
import { addKeyOf, createOwner, createTestClock } from '../../../support/workspace.ts'
import { DAY_MS, MINUTE_MS, WRONG_CODE } from './support.ts'

const CLIENT: Client = { userAgent: null, address: null, token: undefined }
const EMAIL = 'ann@example.com'

async function setUp(db: Db) {
  const clock = createTestClock()
  const codes: string[] = []
  const ended: string[] = []
  const background = createBackgroundTasks({
    error({ err }: { err: unknown }) {
      throw err
    },
  })
  const mailer = {
    async send({ code }: { code?: string }) {
      if (code !== undefined) codes.push(code)
      return 'sent' as const
    },
    close: async () => undefined,
  }
  subscribeToAccessChanges(db, ({ credentialId = '' }) => ended.push(credentialId), {
    onGap: () => undefined,
  })
  const ownerSecret = createOwnerSecret({ db, keyring: createKeyring([newMasterKey()]) })
  await ownerSecret.prepare(true)
  const sessions = createSessions({
    db,
    clock,
    mailer,
    background,
    ownerSecret,
    isShared: false,
    createAccount: null,
  })
  const agentAccounts = createAgentAccounts({
    ...{ db, clock, isSignupOpen: true, sessions, mailer, background },
  })
  const owner = await createOwner(db, clock)
  const addMember = (workspaceId: string, values: Partial<UserRow> = {}) =>
    db
      .insertInto('users')
      .values({
        ...{ id: newId('user'), workspace_id: workspaceId, email: EMAIL, name: 'Ann', role: 'member' },
        created_at: clock.now(),
        ...values,
      })
      .execute()
  const members = createMemberService({
    db,
    clock,
    restrictBoxesOf: createRestrictBoxesOf({ restrictBox: async () => undefined }),
    hasUnrestrictedBoxes,
    sendMail: null,
    publicUrl: 'https://boxes.example.com',
  })
  async function signIn(client = CLIENT) {
    const { id } = await sessions.signIn.requestCode(EMAIL, client)
    await background.close()
    return sessions.signIn.confirm({ id, code: codes.at(-1) ?? '' }, client)
  }
  const findSession = createSessionFinder({ db, clock, background })
  return {
    ...{ clock, codes, ended, background, sessions, agentAccounts, members },
    ...{ owner, addMember, signIn, findSession },
  }
}

t.test('sign-in', (t) =>
  onEachDatabase(t, async (t, newDb) => {
    await t.test('starts, uses, switches and ends a session', async (t) => {
      const db = await newDb(t)
      const { clock, ended, background, sessions, owner, addMember, signIn, findSession } = await setUp(db)
      await addMember(owner.workspaceId)
      const other = newId('workspace')
      await db
        .insertInto('workspaces')
        .values({ id: other, name: 'Other', zero_data_retention: 0, created_at: clock.now() })
        .execute()
      await addMember(other)
      const first = await signIn()
      const found = await findSession(hashSecret(first.token))
      if (!('actor' in found)) throw new Error('no session')
      clock.advance(60 * MINUTE_MS)
      // The writes start when all requests have been answered: otherwise a slow request can start a second write.
      const writes: (() => void)[] = []
      const run: BackgroundTasks['run'] = (name, task) => writes.push(() => background.run(name, task))
      const findLater = createSessionFinder({ db, clock, background: { ...background, run } })
      await Promise.all(Array.from({ length: 5 }, () => findLater(hashSecret(first.token))))
      t.equal(writes.length, 1, 'one write for many requests')
      for (const write of writes) write()
      await background.close()
      const row = await db.selectFrom('sessions').selectAll().executeTakeFirstOrThrow()
      t.match(row, { last_used_at: clock.now(), expires_at: clock.now() + 14 * DAY_MS })

      const target = first.user.workspace_id === other ? owner.workspaceId : other
      const moved = await sessions.service.switchWorkspace(found.actor, target)
      t.equal(moved.user.workspace_id, target)
      t.same(await findSession(hashSecret(first.token)), { rejected: 'unknown' })
      t.same(ended, [first.session.id])
      const again = await signIn({ ...CLIENT, token: moved.token })
      t.equal(again.user.workspace_id, target, 'the workspace that was used last')
      t.same(ended, [first.session.id, moved.session.id])
      clock.advance(14 * DAY_MS)
      t.same(await findSession(hashSecret(again.token)), { rejected: 'unknown' })
      await sessions.prune(new AbortController().signal)
      t.same(await db.selectFrom('sessions').select('id').execute(), [])
      t.same(await db.selectFrom('sign_in_codes').select('id').execute(), [])
    })

    await t.test('counts attempts and codes at the same time one by one', async (t) => {
      const { codes, background, sessions, owner, addMember } = await setUp(await newDb(t))
      await addMember(owner.workspaceId)
      const { signIn } = sessions
      const countFailures = async (requests: Promise<unknown>[]) =>
        (await Promise.allSettled(requests)).filter(({ status }) => status === 'rejected').length
      const { id } = await signIn.requestCode(EMAIL, CLIENT)
      await background.close()
      const code = codes.at(-1) ?? ''
      const right = Array.from({ length: 4 }, () => signIn.confirm({ id, code }, CLIENT))
      t.equal(await countFailures(right), 3, 'a code is used once')
      const requests = Array.from({ length: 8 }, () => signIn.requestCode(EMAIL, CLIENT))
      t.equal(await countFailures(requests), 4)
      const wrong = Array.from({ length: 8 }, () => signIn.confirm({ id, code: WRONG_CODE }, CLIENT))
      t.equal(await countFailures(wrong), 8)
      await background.close()
    })

    await t.test('a member is removed while a session of the member is used and replaced', async (t) => {
      const db = await newDb(t)
      const { clock, background, sessions, members, owner, addMember, findSession } = await setUp(db)
      const { signInOwner } = sessions.signIn
      const ownerSecret = await sessions.ownerSecret.read()
      for (let round = 0; round < 20; round += 1) {
        const first = await signInOwner(ownerSecret, CLIENT)
        clock.advance(60 * MINUTE_MS)
        // Stores the use in the background, whose errors fail the test.
        await findSession(hashSecret(first.token))
        const id = newId('user')
        await addMember(owner.workspaceId, {
          ...{ id, email: `${id}@example.com`, role: 'owner' },
          ...{ joined_at: clock.now(), created_at: clock.now() + 1 },
        })
        const actor = await addKeyOf(db, { ...owner, userId: id })
        const userId = first.session.user_id
        await Promise.all([
          members.remove(actor, userId),
          signInOwner(ownerSecret, { ...CLIENT, token: first.token }),
          background.close(),
        ])
      }
    })

    await t.test('signs in an owner with a confirmed sign-in, not an invited one', async (t) => {
      const { sessions, owner, addMember } = await setUp(await newDb(t))
      await addMember(owner.workspaceId, { role: 'owner', created_at: 0 })
      const { user } = await sessions.signIn.signInOwner(await sessions.ownerSecret.read(), CLIENT)
      t.equal(user.id, owner.userId)
    })

    await t.test('an email address is not confirmed and invited at the same time', async (t) => {
      const { codes, background, sessions, members, owner } = await setUp(await newDb(t))
      for (let round = 0; round < 5; round += 1) {
        const email = `ann${round}@example.com`
        const { id } = await sessions.profile.requestEmail(owner, email)
        await background.close()
        const results = await Promise.allSettled([
          sessions.profile.confirmEmail(owner, { id, code: codes.at(-1) ?? '' }),
          members.invite(owner, { email, role: 'member' }),
        ])
        const refusals = results.filter((result) => result.status === 'rejected')
        t.match(refusals, [{ reason: { code: 'member_exists' } }])
      }
    })

    await t.test('ids that cannot be stored are unknown', async (t) => {
      const { sessions, agentAccounts } = await setUp(await newDb(t))
      const attempt = { id: '\0', code: WRONG_CODE }
      await t.rejects(sessions.signIn.confirm(attempt, CLIENT), { code: 'invalid_code' })
      await t.rejects(agentAccounts.verify(attempt, null), { code: 'invalid_code' })
      t.match(await agentAccounts.requestCode('\0', null), { codeId: /^sic_/ })
    })

    await t.test('deletes agent accounts that were not verified', async (t) => {
      const db = await newDb(t)
      const { clock, codes, background, agentAccounts } = await setUp(db)
      const first = await agentAccounts.create({ email: EMAIL }, null)
      await background.close()
      await agentAccounts.verify({ id: first.codeId, code: codes.at(-1) ?? '' }, null)
      await agentAccounts.create({ email: 'bob@example.com' }, null)
      await background.close()
      clock.advance(7 * DAY_MS)
      await agentAccounts.prune(new AbortController().signal)
      const query = db.selectFrom('workspaces').select(['name', 'purge_after']).orderBy('name')
      t.same(await query.execute(), [
        { name: 'Boxwood', purge_after: null },
        { name: 'ann', purge_after: null },
        { name: 'bob', purge_after: clock.now() },
      ])
      const keys = await db.selectFrom('api_keys').select('name').orderBy('name').execute()
      t.same(
        keys.map(({ name }) => name),
        ['ann', 'owner key'],
      )
      const schedules = db.selectFrom('schedules').select('due_at').where('kind', '=', 'purge_workspace')
      t.same(await schedules.execute(), [{ due_at: clock.now() }])
    })

    await t.test('reads only the rows of the email address or session', async (t) => {
      const { db, readPlans } = capturePlans(await newDb(t))
      const { codes, background, sessions, agentAccounts, owner, addMember } = await setUp(db)
      await addMember(owner.workspaceId)
      await readPlans()
      const { id } = await sessions.signIn.requestCode(EMAIL, CLIENT)
      await background.close()
      const { session } = await sessions.signIn.confirm({ id, code: codes.at(-1) ?? '' }, CLIENT)
      const actor = { ...owner, userId: session.user_id, credential: { ...owner.credential, id: session.id } }
      await sessions.service.load(actor)
      await sessions.service.list(actor)
      await sessions.prune(new AbortController().signal)
      await agentAccounts.requestCode('key_1', null)
      await agentAccounts.prune(new AbortController().signal)
      const plans = await readPlans()
      const scans = plans.filter((plan) => /^(SCAN|Seq Scan)/.test(plan))
      t.same(scans, [])
      for (const index of [
        'sign_in_codes_by_email',
        'users_by_email',
        'sessions_by_user',
        'api_keys_unverified',
      ])
        t.ok(
          plans.some((plan) => plan.includes(index)),
          index,
        )
    })
  }),
)
