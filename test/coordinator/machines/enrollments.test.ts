// Tokens that enroll machines, on each database: limits, pruning, names and sizes.
import t from 'tap'
import { dialectTraits } from '../../../coordinator/db/dialects.ts'
import { lockBox } from '../../../coordinator/db/lock-box.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { chooseTier } from '../../../coordinator/machines/choose-tier.ts'
import { createMachines } from '../../../coordinator/machines/machines.ts'
import { toBoxName } from '../../../coordinator/machines/to-box-name.ts'
import { isEnrollmentToken, newEnrollmentToken } from '../../../shared/enrollment-token.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { TIER_NAMES, TIERS } from '../../../shared/tiers.ts'
import { createTestAdmit } from '../../support/admit.ts'
import { onEachDatabase } from '../../support/db.ts'
import { hashToken } from '../../support/enroll.ts'
import { createOwner, createTestClock } from '../../support/workspace.ts'

const DAY_MS = 24 * 60 * 60_000
const GiB = 1024 ** 3

onEachDatabase(t, async (t, newDb) => {
  const db = await newDb(t)
  const clock = createTestClock()
  const keyHolder = await createOwner(db, clock)
  const session = { id: 'ses_1', expires_at: clock.now() + 365 * DAY_MS }
  await db
    .insertInto('sessions')
    .values({
      ...{ ...session, hash: 'hash', workspace_id: keyHolder.workspaceId, user_id: keyHolder.userId ?? '' },
      ...{ created_at: clock.now(), last_used_at: clock.now() },
    })
    .execute()
  const credential = { type: 'session' as const, id: session.id, expiresAt: session.expires_at }
  const owner: Actor = { ...keyHolder, credential }
  const { enrollments, exchange } = createMachines({
    ...{ db, clock, admit: createTestAdmit(), defaultRegion: 'eu-central-1' },
  })
  const create = (input = {}) => enrollments.create(owner, input, 'https://boxes.example.com')
  const request = (token: string) => ({
    ...{ token, agentTokenHash: hashToken(token), hostname: 'fig', agentVersion: '0.1.0' },
    ...{ platform: 'linux-x64' as const, cpus: 2, memoryBytes: 4 * GiB },
  })

  await t.test('a token is bound to its settings', async (t) => {
    const { enrollment, token, command } = await create({ env: { A: 'b' }, restricted: true })
    t.equal(command, `curl -fsSL https://boxes.example.com/install.sh | sh -s -- --token ${token}`)
    t.match(enrollment, { region: 'eu-central-1', restricted: true, name: null })
    t.equal(Date.parse(enrollment.expiresAt) - clock.now(), LIMITS.enrollmentSeconds * 1000)
    const { boxId } = await exchange(request(token))
    const row = await db.selectFrom('boxes').selectAll().where('id', '=', boxId).executeTakeFirstOrThrow()
    t.match(row, { kind: 'machine', region: 'eu-central-1', restricted: 1, tier: 'lite', hostname: 'fig' })
    t.match(row, { env_vars: '[{"name":"A","value":"b"}]', owner_user_id: owner.userId, agent_lineage: null })
    t.notMatch(JSON.stringify(await db.selectFrom('enrollments').selectAll().execute()), token)
  })

  await t.test(
    'machines count for memberBoxLimit, also when the token is older than the last box',
    async (t) => {
      const tokens = [await create(), await create()]
      // The role counts that the creator has at the exchange.
      const { userId } = owner
      await db.updateTable('users').set({ role: 'member' }).where('id', '=', userId).execute()
      const policy = JSON.stringify({ memberBoxLimit: 2 })
      const row = { workspace_id: owner.workspaceId, policy, updated_by: null, updated_at: 0 }
      await db.insertInto('policies').values(row).execute()
      const results = await Promise.allSettled(tokens.map(({ token }) => exchange(request(token))))
      t.same(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
      const refused = results.find((result) => result.status === 'rejected')
      t.match(refused?.reason, { code: 'policy_denied', fields: { rule: 'memberBoxLimit' } })
      await db.deleteFrom('policies').execute()
      await db.updateTable('users').set({ role: 'owner' }).where('id', '=', userId).execute()
    },
  )

  await t.test(
    'a repeated exchange does not wait for the lock on the box',
    { skip: !dialectTraits(db).locksRows && 'this database has no locks on rows' },
    async (t) => {
      const { token } = await create()
      const first = await exchange(request(token))
      // A request that has locked the box may be waiting for the lock on the workspace, which the exchange has.
      await transaction(db, async (trx) => {
        await lockBox(trx, first.boxId)
        t.same(await exchange(request(token)), first)
      })
    },
  )

  await t.test('the open tokens of a workspace are limited', async (t) => {
    const { enrollment } = await create()
    const [row] = await db.selectFrom('enrollments').selectAll().where('id', '=', enrollment.id).execute()
    if (row === undefined) throw new Error('the token is not stored')
    const open = await enrollments.list(owner)
    for (let i = open.length; i < LIMITS.openEnrollments; i++)
      await db
        .insertInto('enrollments')
        .values({ ...row, id: `enr_${i}`, hash: `hash ${i}` })
        .execute()
    await t.rejects(create(), { code: 'rate_limited' })
    await enrollments.revoke(owner, enrollment.id)
    await create()
    clock.advance(LIMITS.enrollmentSeconds * 1000)
    t.same(await enrollments.list(owner), [], 'expired tokens do not count')
    await create()
  })

  await t.test('expired tokens are deleted after 30 days', async (t) => {
    const { signal } = new AbortController()
    t.equal(await enrollments.prune(signal), 0)
    clock.advance(30 * DAY_MS + 1)
    t.ok((await enrollments.prune(signal)) > 1)
    const rest = await db.selectFrom('enrollments').select('id').execute()
    t.equal(rest.length, 1, 'the last token expired an hour later')
    clock.advance(DAY_MS)
    t.equal(await enrollments.prune(signal), 1)
  })
})

t.test('the tier is the largest one that the machine has', async (t) => {
  for (const tier of TIER_NAMES) t.equal(chooseTier(TIERS[tier]), tier)
  t.equal(chooseTier({ cpus: 4, memoryBytes: 7.7 * GiB }), 'flow', 'the kernel reserves some memory')
  t.equal(chooseTier({ cpus: 4, memoryBytes: 6 * GiB }), 'lite')
  t.equal(chooseTier({ cpus: 1, memoryBytes: 64 * GiB }), 'nano')
  t.equal(chooseTier({ cpus: 0.5, memoryBytes: 1 }), 'nano', 'smaller than every tier')
})

t.test('the hostname becomes a box name', async (t) => {
  for (const [hostname, name] of [
    ['build-server.example.com', 'build-server'],
    ['Ada_Lovelace', 'ada-lovelace'],
    ['-fig-', 'fig'],
    [`${'a'.repeat(31)}--b`, 'a'.repeat(31)],
    ['localhost', null],
    ['', null],
    ['...', null],
    ['日本', null],
  ] as const)
    t.equal(toBoxName(hostname), name, hostname)
})

t.test('a token that was copied in part is recognised', async (t) => {
  const token = newEnrollmentToken()
  t.ok(isEnrollmentToken(token))
  for (const wrong of [
    token.slice(0, -1),
    `${token}0`,
    token.replace('bxe_', 'dcp_'),
    token.toLowerCase(),
    '',
  ])
    t.notOk(isEnrollmentToken(wrong), wrong)
})
