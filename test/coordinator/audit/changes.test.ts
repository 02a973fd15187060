// Every change of a box, a snapshot or a template over HTTP is one event of the audit log, or more where it changes several.
import t from 'tap'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { FakeInfrastructure } from '../../support/fake-infrastructure.ts'
import { createLimitedKey } from '../../support/limited-key.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createTestClock } from '../../support/workspace.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

t.test('changes are recorded', async (t) => {
  const infra = new FakeInfrastructure()
  infra.canFreeze = true
  const clock = createTestClock()
  const coordinator = await startTestCoordinator(t, {
    ...{ infra, clock },
    env: { BOXWOOD_FINAL_SNAPSHOTS: 'on', BOXWOOD_FREEZE_MINUTES: '60', BOXWOOD_DEEP_SLEEP_DAYS: '30' },
  })
  const { api, edge, instance, waitForState } = coordinator
  const { db, scheduler } = instance.context
  const userId = instance.owner?.userId ?? ''
  const tokenId = instance.owner?.credential.id ?? ''

  let lastNo = 0
  /** The events since the last call, without those about keys and sessions. */
  async function readEvents() {
    const rows = await db.selectFrom('audit_log').selectAll().where('no', '>', lastNo).orderBy('no').execute()
    lastNo = rows.at(-1)?.no ?? lastNo
    return rows
      .filter(({ kind }) => /^(box|snapshot|template|command_history)\./.test(kind))
      .map(({ kind, actor_kind: actor, box_id: boxId, detail }) => ({
        ...{ kind, actor, boxId },
        detail: JSON.parse(detail ?? ''),
      }))
  }
  const byUser = (kind: string, boxId: string, detail: object) => ({ kind, actor: 'user', boxId, detail })
  const bySystem = (kind: string, boxId: string, detail: object) => ({ kind, actor: 'system', boxId, detail })
  async function waitForEvents(count: number) {
    await waitUntil(`${count} events`, async () => {
      const rows = await db.selectFrom('audit_log').select('no').where('no', '>', lastNo).execute()
      return rows.length >= count
    })
    return readEvents()
  }
  async function create(path: string, body: object, headers = {}) {
    const { status, json } = await api('POST', path, body, { headers })
    t.equal(status, 202, path)
    await waitForState(json.box.id, 'running')
    return json.box
  }
  const waitUntilAvailable = (id: string) =>
    waitUntil('the snapshot is available', async () => {
      const { json } = await api('GET', '/snapshots')
      return json.snapshots.find((row: { id: string }) => row.id === id)?.status === 'available'
    })
  const advance = (ms: number) => {
    clock.advance(ms)
    scheduler.runDue()
  }

  const [first] = (await api('GET', '/boxes')).json.boxes
  t.match(await readEvents(), [byUser('box.create', first.id, {})], 'the first box, by the first key')

  const tier = 'nano'
  const fig = await create('/boxes', { name: 'fig', tier, env: { TOKEN: 'hidden' } })
  const { id, region } = fig
  const name = 'fig'
  await t.test('create', async (t) => {
    t.same(await readEvents(), [byUser('box.create', id, { name, tier, region })])
    const headers = { 'idempotency-key': 'once' }
    const plum = await create('/boxes', { name: 'plum' }, headers)
    await create('/boxes', { name: 'plum' }, headers)
    t.match(await readEvents(), [byUser('box.create', plum.id, { name: 'plum' })], 'a replay is not recorded')
    t.equal((await api('POST', '/boxes', { name: 'plum' })).status, 409)
    t.same(await readEvents(), [], 'a refused request is not recorded')
  })

  await t.test('update', async (t) => {
    const patch = async (body: object) => t.equal((await api('PATCH', `/boxes/${id}`, body)).status, 200)
    await patch({ autoPauseMin: 60, autoSnapshotKeep: 3, quietHoursExempt: true })
    await patch({ autoPauseMin: 60 })
    await patch({ env: { TOKEN: 'hidden too' } })
    await patch({ env: { TOKEN: 'hidden too' } })
    t.same(await readEvents(), [
      byUser('box.update', id, {
        name,
        fields: 'autoPauseMin,quietHoursExempt',
        autoPauseMin: 60,
        quietHoursExempt: true,
      }),
      byUser('box.update', id, { name, fields: 'env' }),
    ])
    const { json } = await api('PATCH', `/boxes/${id}`, { ttlMinutes: 5 })
    const { pauseAt } = json.box
    t.same(await readEvents(), [byUser('box.update', id, { name, fields: 'pauseAt', pauseAt })])
    await patch({ pauseAt: null, autoPauseMin: null })
    t.equal((await readEvents()).length, 1)
    await patch({ name: 'figgy' })
    await patch({ name: 'figgy' })
    await patch({ name, autoPauseMin: 30 })
    await patch({ autoPauseMin: null })
    t.match(await readEvents(), [
      byUser('box.update', id, { name: 'figgy', fields: 'name', previousName: name }),
      byUser('box.update', id, {
        name,
        fields: 'name,autoPauseMin',
        previousName: 'figgy',
        autoPauseMin: 30,
      }),
      byUser('box.update', id, { name, fields: 'autoPauseMin' }),
    ])
  })

  await t.test('suspend and wake', async (t) => {
    const suspend = (query = '') => api('POST', `/boxes/${id}/suspend${query}`)
    const wake = () => api('POST', `/boxes/${id}/wake`)
    for (const query of ['', '', '?stop=1']) {
      await suspend(query)
      await waitForState(id, 'suspended')
    }
    await waitUntil('the box is stopped', async () => {
      const { box, job } = (await api('GET', `/boxes/${id}`)).json
      return box.suspendedAs === 'stopped' && job === null
    })
    await suspend('?stop=1')
    await wake()
    await waitForState(id, 'running')
    await wake()
    t.same(await readEvents(), [
      byUser('box.suspend', id, { name, stop: false }),
      byUser('box.suspend', id, { name, stop: true }),
      byUser('box.wake', id, { name }),
    ])

    const machineKey = await createLimitedKey(coordinator, { kind: 'machine' })
    await suspend('?stop=1')
    await waitForState(id, 'suspended')
    await edge('fig', 'POST', '/exec', { command: 'secret-command' }, { key: machineKey })
    await waitForState(id, 'running')
    await edge('fig', 'POST', '/exec', { command: 'secret-command' }, { key: machineKey })
    t.same(await readEvents(), [
      byUser('box.suspend', id, { name, stop: true }),
      { ...byUser('box.wake', id, { name }), actor: 'cli' },
    ])
  })

  await t.test('resize and move', async (t) => {
    for (const target_tier of ['micro', 'micro']) await api('POST', `/boxes/${id}/resize`, { target_tier })
    await waitUntil('the box has its new size', async () => {
      const { box, job } = (await api('GET', `/boxes/${id}`)).json
      return box.observedState === 'running' && job === null
    })
    const to = 'eu-central-1'
    for (const target of [to, to]) await api('POST', `/boxes/${id}/region`, { region: target })
    await waitUntil('the box has moved', async () => {
      const { box } = (await api('GET', `/boxes/${id}`)).json
      return box.region === to && box.observedState === 'running'
    })
    t.same(await readEvents(), [
      byUser('box.resize', id, { name, from: tier, to: 'micro' }),
      byUser('box.move', id, { name, from: region, to }),
    ])
  })

  await t.test('snapshots, templates and restores', async (t) => {
    const take = async (path: string, body: object) => {
      const { status, json } = await api('POST', path, body)
      t.equal(status, 201)
      await waitUntilAvailable(json.snapshot.id)
      return json.snapshot.id as string
    }
    const snapshotId = await take('/snapshots', { boxId: id, name: 'daily', description: 'private text' })
    const templateId = await take(`/boxes/${id}/template`, { name: 'base' })
    for (const _ of [1, 2]) await api('POST', `/snapshots/${snapshotId}/template`, { name: 'base' })
    t.same(await readEvents(), [
      byUser('snapshot.create', id, { snapshotId, name: 'daily', kind: 'manual' }),
      byUser('template.create', id, { snapshotId: templateId, name: 'base', template: 'base' }),
      byUser('template.create', id, {
        ...{ snapshotId, name: 'daily', template: 'base', previousSnapshotId: templateId },
      }),
    ])

    const source = { snapshotId, sourceBoxId: id }
    const restored = await create(`/snapshots/${snapshotId}/restore`, { name: 'restored' })
    const fromTemplate = await create('/boxes', { fromTemplate: 'base', name: 'from-template' })
    const fork = await api('POST', `/boxes/${id}/fork`, { name: 'forked' })
    const kept = await api('POST', `/boxes/${id}/fork`, { name: 'forked-2', keepSnapshot: true })
    const settings = { tier: 'micro', region: 'eu-central-1' }
    const describeFork = ({ json: { box, snapshot } }: typeof fork, keepSnapshot: boolean) => [
      byUser('box.create', box.id, {
        ...{ name: box.hostname, ...settings, snapshotId: snapshot.id, sourceBoxId: id },
      }),
      byUser('box.fork', id, {
        ...{ name, newBoxId: box.id, newName: box.hostname, snapshotId: snapshot.id, keepSnapshot },
      }),
    ]
    const { id: keptId, name: keptName } = kept.json.snapshot
    t.same(await readEvents(), [
      byUser('snapshot.restore', restored.id, { name: 'restored', ...settings, ...source, template: 'base' }),
      byUser('snapshot.restore', fromTemplate.id, {
        ...{ name: 'from-template', ...settings, ...source, template: 'base' },
      }),
      ...describeFork(fork, false),
      byUser('snapshot.create', id, { snapshotId: keptId, name: keptName, kind: 'fork' }),
      ...describeFork(kept, true),
    ])

    for (const _ of [1, 2]) await api('DELETE', `/snapshots/${snapshotId}/template`)
    for (const _ of [1, 2]) await api('DELETE', `/snapshots/${snapshotId}`)
    t.same(await readEvents(), [
      byUser('template.delete', id, { snapshotId, name: 'daily', template: 'base' }),
      byUser('snapshot.delete', id, { snapshotId, name: 'daily' }),
    ])
    await waitForState(fork.json.box.id, 'running')
    await waitForState(kept.json.box.id, 'running')
    await waitUntil('the copy of the fork is deleted', async () => {
      const { json } = await api('GET', '/snapshots?transient=1')
      return json.snapshots.every((row: { id: string }) => row.id !== fork.json.snapshot.id)
    })
    t.same(await readEvents(), [], 'the copy of a fork is not recorded')
  })

  await t.test('what the coordinator does by itself', async (t) => {
    await api('PATCH', `/boxes/${id}`, { autoSnapshotHours: 1, autoSnapshotKeep: 1 })
    await readEvents()
    advance(60 * MINUTE_MS)
    const [first] = await waitForEvents(1)
    t.match(first, bySystem('snapshot.create', id, { kind: 'auto' }))
    await waitUntilAvailable(first?.detail.snapshotId)
    advance(60 * MINUTE_MS)
    const [second, removal] = await waitForEvents(2)
    t.match(second, bySystem('snapshot.create', id, { kind: 'auto' }))
    const reason = 'replaced by newer automatic snapshots'
    const { snapshotId, name: snapshotName } = first?.detail ?? {}
    t.same(removal, bySystem('snapshot.delete', id, { snapshotId, name: snapshotName, reason }))

    await api('PATCH', `/boxes/${id}`, { autoSnapshotHours: null, autoPauseMin: 30 })
    await readEvents()
    infra.idleSeconds.set(id, 3600)
    advance(30 * MINUTE_MS)
    await waitForState(id, 'suspended')
    t.same(await readEvents(), [
      bySystem('box.suspend', id, { name, stop: false, reason: 'idle for 30 minutes' }),
    ])
    advance(60 * MINUTE_MS)
    t.same(await waitForEvents(1), [
      bySystem('box.suspend', id, { name, stop: true, reason: 'stopped: frozen for 60 minutes' }),
    ])
    await waitUntil('the box is stopped', async () => (await api('GET', `/boxes/${id}`)).json.job === null)
    advance(30 * DAY_MS)
    await waitForState(id, 'deep_sleep')
    const [expired, ...others] = (await readEvents()).sort((a, b) => (a.kind < b.kind ? 1 : -1))
    t.match(
      expired,
      bySystem('snapshot.delete', id, { snapshotId: second?.detail.snapshotId, reason: 'expired' }),
    )
    t.same(others, [
      bySystem('box.sleep', id, { name, reason: 'packed into an archive: suspended for 30 days' }),
    ])

    await api('POST', `/boxes/${id}/wake`)
    await waitForState(id, 'running')
    await api('PATCH', `/boxes/${id}`, { ttlMinutes: 5 })
    await readEvents()
    advance(5 * MINUTE_MS)
    await waitForState(id, 'suspended')
    t.same(await readEvents(), [
      bySystem('box.suspend', id, { name, stop: false, reason: 'deadline reached' }),
    ])
  })

  await t.test('delete', async (t) => {
    for (const _ of [1, 2]) t.equal((await api('DELETE', `/boxes/${id}`)).status, 202)
    await waitForState(id, 'terminated')
    await api('DELETE', `/boxes/${id}`)
    t.match(await readEvents(), [
      bySystem('snapshot.create', id, { kind: 'final' }),
      byUser('box.delete', id, { name }),
    ])
  })

  const { actors, text } = await readLog()
  t.notMatch(text, /hidden|secret-command|private text/)
  t.same(actors, [[userId, tokenId]], 'the events of the owner name the user and the key')

  async function readLog() {
    const rows = await db.selectFrom('audit_log').selectAll().execute()
    const ofUser = rows.filter((row) => row.actor_kind === 'user')
    const pairs = new Set(ofUser.map((row) => `${row.actor_user_id} ${row.actor_token_id}`))
    return { actors: [...pairs].map((pair) => pair.split(' ')), text: JSON.stringify(rows) }
  }
})
