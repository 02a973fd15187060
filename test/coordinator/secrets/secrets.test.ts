// Secrets on each database: concurrent requests, what boxes get and lose without a request, the usage, and the plans of the queries.
import t, { type Test } from 'tap'
import { newMasterKey } from '../../../coordinator/base/sealing/master-key.ts'
import { createKeyring } from '../../../coordinator/base/sealing/master-keyring.ts'
import { SecretValue } from '../../../coordinator/base/sealing/secret-value.ts'
import { deleteBoxRows } from '../../../coordinator/boxes/delete-rows.ts'
import { createBoxFinder } from '../../../coordinator/boxes/find-box.ts'
import { subscribeToVariableChanges } from '../../../coordinator/boxes/variable-changes.ts'
import { lockBox } from '../../../coordinator/db/lock-box.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import type { BoxRow } from '../../../coordinator/db/schema.ts'
import { type Trx, transaction } from '../../../coordinator/db/transaction.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { confirmActor } from '../../../coordinator/identity/confirm-actor.ts'
import { secretsModule } from '../../../coordinator/secrets/module.ts'
import type { BrokerCut } from '../../../coordinator/secrets/types.ts'
import { loadConfig } from '../../../coordinator/server/config.ts'
import { type EnvironmentToggles, NO_TOGGLES } from '../../../shared/api/environments.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { BROKER_TEST_HOST } from '../../../shared/secret-hosts.ts'
import { onEachDatabase } from '../../support/db.ts'
import { fillSecrets } from '../../support/fill-secrets.ts'
import { capturePlans } from '../../support/query-plan.ts'
import { silentLog } from '../../support/tunnel.ts'
import { addUser, createOwner, createTestBoxService, createTestClock } from '../../support/workspace.ts'

async function start(t: Test, db: Db) {
  const clock = createTestClock()
  const owner = await createOwner(db, clock)
  const changed: string[] = []
  /** What the requests have waited for. */
  const waits: string[] = []
  const boxFinder = createBoxFinder(db)
  const origin = 'http://localhost:7070'
  subscribeToVariableChanges(db, (boxId) => changed.push(boxId), { onGap: () => undefined })
  const module = secretsModule({
    ...{ db, clock, log: silentLog, boxFinder, confirmActor },
    config: loadConfig({}),
    keyring: createKeyring([newMasterKey()]),
    loadPlanLimits: async () => ({ snapshots: 1000, secrets: LIMITS.secrets, terminals: 64 }),
    urls: { agents: origin, public: origin, listener: origin },
    boxVariables: {
      getBrokerTest: () => ({ state: 'unknown', message: null, checkedAt: null }),
      whenSent: async () => void waits.push('sent'),
    },
    tunnels: {
      async wait() {
        waits.push('connected')
        throw new ApiError('box_unreachable')
      },
    },
  })
  t.teardown(module.close.run)
  const { secretBroker, secretUses, boxSecrets, secrets } = module.services
  const { secretGrants: grants, secretMounts: mounts } = module.services
  const cuts: BrokerCut[] = []
  secretBroker.events.on('cut', (cut) => cuts.push(cut))
  const boxes = createTestBoxService(db, {
    clock,
    beforeDelete: (trx, box) => boxSecrets.onBoxDelete(trx, box),
  })
  const createBox = async (actor: Actor = owner, name?: string): Promise<BoxRow> =>
    boxes.find(actor, (await boxes.create(actor, name === undefined ? {} : { name })).id)
  const createSecret = (name: string, body: { hosts?: string[]; grants?: object[] } = {}) =>
    secrets.create(owner, { name, value: new SecretValue(`value of ${name}`), ...body })
  const listMounts = async (boxId: string) =>
    (await mounts.list(owner, boxId)).mounts.map(({ envName, secret }) => `${envName}=${secret.name}`)
  const inTransaction = <T>(boxId: string, fn: (trx: Trx, box: BoxRow) => Promise<T>): Promise<T> =>
    transaction(db, async (trx) => fn(trx, (await lockBox(trx, boxId)) as BoxRow))
  const findNames = async (boxId: string, host: string) =>
    (await secretBroker.find(boxId, host))?.secrets
      .map(({ name, open }) => open()?.reveal().slice('value of '.length) ?? `${name} (damaged)`)
      .sort()
  return {
    ...{
      db,
      clock,
      owner,
      boxes,
      createBox,
      createSecret,
      listMounts,
      inTransaction,
      findNames,
      changed,
      waits,
    },
    ...{ secretBroker, secretUses, boxSecrets, secrets, grants, mounts, module },
    takeCuts: () => cuts.splice(0),
  }
}

/** The codes of the rejections. */
const codesOf = (results: PromiseSettledResult<unknown>[]): string[] =>
  results.flatMap((result) =>
    result.status === 'rejected' ? [result.reason.code ?? String(result.reason)] : [],
  )

onEachDatabase(t, async (t, newDb) => {
  t.test('a mount on a running box waits for an agent that is reconnecting', async (t) => {
    const { db, owner, mounts, createBox, createSecret, waits } = await start(t, await newDb(t))
    const { id } = await createBox()
    const { id: secretId } = await createSecret('TOKEN')
    await mounts.mount(owner, id, { secretId, envName: 'A' })
    t.same(waits, ['sent'], 'the box is not running')
    await db.updateTable('boxes').set({ observed_state: 'running' }).execute()
    await mounts.mount(owner, id, { secretId, envName: 'B' })
    t.same(waits.slice(1), ['connected', 'sent'])
  })

  t.test('concurrent requests do not exceed the limit, and no two have a name', async (t) => {
    const { db, createSecret, owner, secrets } = await start(t, await newDb(t))
    const { id } = await createSecret('FIRST')
    await fillSecrets(db, id, LIMITS.secrets - 4)
    const same = await Promise.allSettled([createSecret('SAME'), createSecret('SAME')])
    t.same(codesOf(same), ['name_taken'])
    const results = await Promise.allSettled(Array.from({ length: 6 }, (_, n) => createSecret(`LAST${n}`)))
    t.same(codesOf(results), Array(4).fill('secret_limit'))
    let count = 0
    for await (const page of await secrets.listPages(owner, undefined)) count += page.length
    t.equal(count, LIMITS.secrets)
  })

  t.test(
    'concurrent mounts: one variable has one secret, and no mount is left without a grant',
    async (t) => {
      const { owner, createBox, createSecret, listMounts, mounts, grants, inTransaction, findNames } =
        await start(t, await newDb(t))
      const [box, other] = [await createBox(), await createBox()]
      const [first, second] = [await createSecret('FIRST'), await createSecret('SECOND')]
      const results = await Promise.allSettled(
        [first, second, first].map(({ id: secretId }) =>
          mounts.mount(owner, box.id, { secretId, envName: 'TOKEN' }),
        ),
      )
      t.same(codesOf(results), ['env_name_taken', 'env_name_taken'])
      t.equal((await listMounts(box.id)).length, 1)

      const shared = await createSecret('SHARED', { hosts: ['a.example.com'] })
      const boxes = await Promise.all(Array.from({ length: 6 }, () => createBox()))
      await Promise.allSettled([
        ...boxes.slice(0, 3).map(({ id }) => mounts.mount(owner, id, { secretId: shared.id, envName: 'A' })),
        grants.add(owner, shared.id, { boxId: other.id }),
        ...boxes.slice(3).map(({ id }) => mounts.mount(owner, id, { secretId: shared.id, envName: 'A' })),
      ])
      for (const { id } of boxes) {
        t.same(await listMounts(id), [])
        t.equal(await findNames(id, 'a.example.com'), undefined)
        t.equal(await inTransaction(id, async (_, row) => row.mount_vars), '[]')
      }
      t.same(
        codesOf(
          await Promise.allSettled([mounts.mount(owner, other.id, { secretId: shared.id, envName: 'A' })]),
        ),
        [],
      )
    },
  )

  t.test(
    'a new box gets what its source had and what the channels name, as far as grants allow it',
    async (t) => {
      const { owner, createBox, createSecret, listMounts, boxSecrets, mounts, inTransaction, db, takeCuts } =
        await start(t, await newDb(t))
      const source = await createBox()
      const all = await createSecret('OF_ALL')
      const ofSource = await createSecret('OF_SOURCE', { grants: [{ boxId: source.id }] })
      const ofOwner = await createSecret('OF_OWNER', { grants: [{ userId: owner.userId ?? '' }] })
      await createSecret('ANTHROPIC_API_KEY')
      await createSecret('GITHUB_TOKEN')
      await createSecret('OPENAI_API_KEY', { grants: [{ boxId: source.id }] })
      for (const { id: secretId, name } of [all, ofSource, ofOwner])
        await mounts.mount(owner, source.id, { secretId, envName: name })
      await mounts.mount(owner, source.id, { secretId: all.id, envName: 'GITHUB_TOKEN' })
      const carried = await inTransaction(source.id, (trx) => boxSecrets.listCarried(trx, source.id))
      t.equal(carried.length, 4)
      const create = async (
        actor: Actor,
        toggles: Partial<EnvironmentToggles> | null,
        restricted = 0 as 0 | 1,
      ) => {
        const box = await createBox(actor)
        const vars = await inTransaction(box.id, (trx, row) =>
          boxSecrets.onCreate(
            trx,
            { ...row, restricted },
            {
              ...{ actor, carried: [...carried, { secretId: 'sec_deleted', envName: 'DELETED' }] },
              toggles: toggles && { ...NO_TOGGLES, ...toggles },
            },
          ),
        )
        const names = JSON.parse(vars).map(({ name }: { name: string }) => name)
        return { names: names.sort(), mounted: (await listMounts(box.id)).sort(), boxId: box.id }
      }
      const copy = await create(owner, { codingAgents: true, git: true })
      t.same(copy.mounted, [
        'ANTHROPIC_API_KEY=ANTHROPIC_API_KEY',
        'GITHUB_TOKEN=OF_ALL',
        'OF_ALL=OF_ALL',
        'OF_OWNER=OF_OWNER',
      ])
      t.same(copy.names, ['ANTHROPIC_API_KEY', 'GITHUB_TOKEN', 'OF_ALL', 'OF_OWNER'])
      const member = await addUser(db, owner, { role: 'member' })
      t.same((await create(member, null)).mounted, ['GITHUB_TOKEN=OF_ALL', 'OF_ALL=OF_ALL'])
      t.same((await create(owner, { codingAgents: true }, 1)).names, [], 'a restricted box gets none')

      const again = await inTransaction(copy.boxId, (trx, row) =>
        boxSecrets.onCreate(trx, row, { actor: owner, carried: [], toggles: { ...NO_TOGGLES, git: true } }),
      )
      t.equal(JSON.parse(again).length, 4, 'an upgrade keeps the mounts and adds none under a taken name')

      await inTransaction(copy.boxId, (trx) => boxSecrets.restrictBox(trx, copy.boxId))
      t.same(await listMounts(copy.boxId), [])
      t.equal(takeCuts().length, 0, 'secrets without hosts have no connections')
      t.equal(await inTransaction(copy.boxId, async (_, row) => row.mount_vars), '[]')
    },
  )

  t.test('the secret of a repository is mounted under its name', async (t) => {
    const { owner, createBox, createSecret, listMounts, boxSecrets, mounts, inTransaction } = await start(
      t,
      await newDb(t),
    )
    const [box, other] = [await createBox(), await createBox()]
    const secret = await createSecret('GIT', { hosts: ['git.example.com'] })
    await createSecret('OTHER', { grants: [{ boxId: other.id }] })
    const mount = (name: string, changes: Partial<BoxRow> = {}) =>
      inTransaction(box.id, (trx, row) => boxSecrets.mountForRepo(trx, { ...row, ...changes }, name))
    const found = { placeholder: secret.placeholder, hosts: ['git.example.com'] }
    t.same(await mount('GIT'), found)
    t.same(await mount('GIT'), found, 'it has no effect on a box that has the secret')
    t.same(await listMounts(box.id), ['GIT=GIT'])
    t.match(await mount('UNKNOWN'), { problem: /no secret UNKNOWN/ })
    t.match(await mount('OTHER'), { problem: /OTHER is not granted/ })
    t.match(await mount('GIT', { restricted: 1 }), { problem: /restricted/ })
    const third = await createSecret('THIRD')
    await mounts.mount(owner, other.id, { secretId: secret.id, envName: 'THIRD' })
    t.match(await inTransaction(other.id, (trx, row) => boxSecrets.mountForRepo(trx, row, third.name)), {
      problem: /another secret under the variable THIRD/,
    })
  })

  t.test('what the broker finds', async (t) => {
    const { db, owner, boxes, createBox, createSecret, mounts, secrets, findNames, secretBroker, takeCuts } =
      await start(t, await newDb(t))
    const [box, other] = [await createBox(), await createBox()]
    const exact = await createSecret('EXACT', { hosts: ['api.example.com'] })
    const wildcard = await createSecret('WILDCARD', { hosts: ['*.example.com'], grants: [{ boxId: box.id }] })
    const nowhere = await createSecret('NOWHERE')
    t.equal(await secretBroker.find(box.id, BROKER_TEST_HOST), null, 'nothing is mounted')
    for (const [n, { id: secretId }] of [exact, exact, wildcard, nowhere].entries())
      await mounts.mount(owner, box.id, { secretId, envName: `V${n}` })
    await mounts.mount(owner, other.id, { secretId: nowhere.id, envName: 'V' })
    t.same(await findNames(box.id, 'api.example.com'), ['EXACT', 'WILDCARD'], 'each once')
    t.same(await findNames(box.id, 'a.b.example.com'), ['WILDCARD'])
    for (const host of ['example.com', 'evilexample.com', 'api.example.com.evil.net', 'api.example.net'])
      t.equal(await findNames(box.id, host), undefined, host)
    t.equal(await findNames(other.id, 'api.example.com'), undefined, 'of another box')
    t.match(await secretBroker.find(other.id, BROKER_TEST_HOST), {
      workspaceId: owner.workspaceId,
      secrets: [],
    })
    t.equal(await secretBroker.find('unknown', 'api.example.com'), null)

    const { value } = await db
      .selectFrom('secrets')
      .select('value')
      .where('id', '=', exact.id)
      .executeTakeFirstOrThrow()
    const store = (value: string) =>
      db.updateTable('secrets').set({ value }).where('id', '=', exact.id).execute()
    for (const damaged of ['', value.slice(0, -4), value.replace(/^v1\.[^.]+/, 'v1.missing')]) {
      await store(damaged)
      t.same(await findNames(box.id, 'api.example.com'), ['EXACT (damaged)', 'WILDCARD'])
    }
    await secrets.patch(owner, exact.id, { value: new SecretValue('value of EXACT') })
    t.same(await findNames(box.id, 'api.example.com'), ['EXACT', 'WILDCARD'], 'a new value mends it')

    // The query checks grants and the box by itself.
    await db.updateTable('secret_grants').set({ box_id: other.id }).execute()
    t.same(await findNames(box.id, 'api.example.com'), ['EXACT'])
    await db.updateTable('secret_grants').set({ box_id: null, user_id: owner.userId }).execute()
    t.same(await findNames(box.id, 'a.example.com'), ['WILDCARD'])
    await db.updateTable('users').set({ removed_at: 1 }).execute()
    t.equal(await findNames(box.id, 'a.example.com'), undefined, 'the owner has left the workspace')
    await db.updateTable('users').set({ removed_at: null }).execute()
    await db.updateTable('boxes').set({ restricted: 1 }).execute()
    t.equal(await findNames(box.id, 'api.example.com'), undefined)
    await db.updateTable('boxes').set({ restricted: 0 }).execute()
    await boxes.remove(owner, box.id)
    t.equal(await findNames(box.id, 'api.example.com'), undefined)
    const [cut, ...others] = takeCuts()
    t.same(cut?.patterns.toSorted(), ['*.example.com', 'api.example.com'])
    t.same([cut?.boxId, others], [box.id, []])
  })

  t.test('no change is made with rights that have changed during the request', async (t) => {
    const { db, owner, createBox, createSecret, listMounts, mounts, secrets, grants } = await start(
      t,
      await newDb(t),
    )
    const member = await addUser(db, owner, { role: 'member' })
    const box = await createBox(member)
    const { id } = await createSecret('TOKEN')
    const mount = await mounts.mount(member, box.id, { secretId: id, envName: 'TOKEN' })
    const listChanges = () => [
      mounts.mount(member, box.id, { secretId: id, envName: 'OTHER' }),
      mounts.unmount(member, box.id, mount.id),
      grants.add(member, id, { boxId: box.id }),
      secrets.patch(member, id, { description: 'other' }),
      secrets.remove(member, id),
    ]
    const setUser = (changes: { role?: 'contractor'; removed_at?: number }) =>
      db
        .updateTable('users')
        .set(changes)
        .where('id', '=', member.userId ?? '')
        .execute()
    await setUser({ role: 'contractor' })
    t.same(codesOf(await Promise.allSettled(listChanges())), Array(5).fill('not_allowed'))
    await setUser({ removed_at: 1 })
    t.same(codesOf(await Promise.allSettled(listChanges())), Array(5).fill('unauthorized'))
    t.same(await listMounts(box.id), ['TOKEN=TOKEN'])
  })

  t.test('the newest uses are kept, and go with the secret and the box', async (t) => {
    const {
      db,
      clock,
      owner,
      boxes,
      createBox,
      createSecret,
      mounts,
      secrets,
      secretUses,
      boxSecrets,
      grants,
    } = await start(t, await newDb(t))
    const [box, other] = [await createBox(), await createBox()]
    const { id } = await createSecret('TOKEN', { hosts: ['*.example.com'], grants: [{ boxId: other.id }] })
    const second = await createSecret('SECOND', { grants: [{ boxId: box.id }] })
    await grants.add(owner, id, { boxId: box.id })
    await mounts.mount(owner, box.id, { secretId: id, envName: 'TOKEN' })
    const use = (boxId: string, host: string) => {
      clock.advance(1)
      secretUses.recordUse({ secretId: id, boxId, host })
    }
    for (let n = 0; n < LIMITS.secretUsageRows + 50; n++) use(box.id, `h${n}.example.com`)
    await secretUses.flush()
    use(other.id, 'h0.example.com')
    use('deleted', 'h0.example.com')
    use(box.id, 'h49.example.com')
    await Promise.all([secretUses.flush(), secretUses.flush()])
    const listed = await secrets.listUses(owner, id)
    t.equal(listed.length, LIMITS.secretUsageRows)
    t.match(listed.slice(0, 3), [
      { host: 'h49.example.com', boxId: box.id },
      { host: 'h0.example.com', boxId: other.id },
      { host: `h${LIMITS.secretUsageRows + 49}.example.com` },
    ])
    const count = async () => (await db.selectFrom('secret_uses').select('host').execute()).length
    t.equal(await count(), LIMITS.secretUsageRows)

    await boxes.remove(owner, box.id)
    await db.deleteFrom('jobs').execute()
    await transaction(db, (trx) => deleteBoxRows(trx, box.id, boxSecrets.deleteOfBox))
    t.equal(await count(), 1)
    const remaining = await db
      .selectFrom('secret_grants')
      .select('box_id')
      .where('secret_id', '=', second.id)
      .execute()
    t.same(remaining, [{ box_id: box.id }], 'the grant stays')
    await grants.remove(owner, second.id, second.grants[0]?.id ?? '')
    await t.rejects(mounts.mount(owner, other.id, { secretId: second.id, envName: 'SECOND' }), {
      code: 'secret_not_granted',
    })
    await secrets.remove(owner, id)
    t.equal(await count(), 0)
  })

  t.test('no request scans a table', async (t) => {
    const { db, readPlans } = capturePlans(await newDb(t))
    const {
      owner,
      createBox,
      createSecret,
      mounts,
      secrets,
      grants,
      boxSecrets,
      findNames,
      secretUses,
      boxes,
    } = await start(t, db)
    const box = await createBox()
    await readPlans()
    const { id } = await createSecret('TOKEN', { hosts: ['a.example.com'] })
    const mount = await mounts.mount(owner, box.id, { secretId: id, envName: 'A' })
    await findNames(box.id, 'a.example.com')
    secretUses.recordUse({ secretId: id, boxId: box.id, host: 'a.example.com' })
    await secretUses.flush()
    await secrets.listUses(owner, id)
    for await (const page of await secrets.listPages(owner, box.id)) t.equal(page.length, 1)
    await secrets.patch(owner, id, { hosts: [] })
    const grant = await grants.add(owner, id, { boxId: box.id })
    await mounts.unmount(owner, box.id, mount.id)
    await grants.remove(owner, id, grant.id)
    await secrets.patch(owner, id, { scope: 'workspace' })
    await transaction(db, (trx) => boxSecrets.removeMember(trx, { actor: owner, userId: owner.userId ?? '' }))
    await transaction(db, (trx) =>
      boxSecrets.onCreate(trx, box, {
        actor: owner,
        carried: [{ secretId: id, envName: 'A' }],
        toggles: null,
      }),
    )
    await boxes.remove(owner, box.id)
    await secrets.remove(owner, id)
    const plans = (await readPlans()).filter((line) => /secret/.test(line))
    t.ok(plans.length > 20, `${plans.length} lines`)
    for (const line of plans) {
      t.notMatch(line, /Seq Scan/)
      t.notMatch(line, /^SCAN (?!\d|CONSTANT)/)
    }
  })
})
