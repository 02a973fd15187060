// GET /boxes/{id}/metrics over HTTP: access, time ranges, and boxes that do not run.
import t from 'tap'
import { applyReports } from '../../../../coordinator/boxes/lifecycle/apply-reports.ts'
import { startTestCoordinator } from '../../../support/coordinator.ts'
import { createLimitedKey } from '../../../support/limited-key.ts'
import { noReportHandlers } from '../../../support/report-handlers.ts'
import { createTestClock } from '../../../support/workspace.ts'
import { sample } from './support.ts'

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

t.test('GET /boxes/{id}/metrics', async (t) => {
  // Ten seconds after a bucket has started.
  const clock = createTestClock(Date.UTC(2030, 5, 10, 12, 0, 10))
  const now = clock.now() / 1000
  const coordinator = await startTestCoordinator(t, { clock })
  const { api, instance } = coordinator
  const box = (await api('POST', '/boxes', { name: 'fig' })).json.box
  await coordinator.waitForState(box.id, 'running')
  const { db, boxMetrics: metrics } = instance.context
  let seq = 0
  const report = (starts: number[]) =>
    applyReports(db, { ...noReportHandlers, metrics: metrics.reportHandler }, [
      {
        boxId: box.id,
        epoch: 'e',
        reports: starts.map((start, i) => ({ seq: ++seq, report: sample(start, { cpu_pct: i + 1 }) })),
      },
    ])
  const get = (query: Record<string, string | number> = {}, key?: string) => {
    const text = new URLSearchParams(query as Record<string, string>)
    return api('GET', `/boxes/${box.id}/metrics?${text}`, undefined, key === undefined ? {} : { key })
  }
  const iso = (seconds: number) => new Date(seconds * 1000).toISOString()
  const bucketStart = now - 10
  await report([bucketStart - 90, bucketStart - 60, bucketStart - 30])

  t.test('the default is the last hour, with a bucket for every 30 seconds', async (t) => {
    const { status, json } = await get()
    t.equal(status, 200)
    t.match(json, { v: 1, res: 30, from: iso(now - HOUR), to: iso(now), fs: [], ifaces: [] })
    t.equal(json.buckets[0], bucketStart - HOUR)
    t.equal(json.buckets.at(-1), bucketStart)
    t.equal(json.buckets.length, 121)
    t.same(json.series.cpu_pct.avg.slice(-5), [null, 1, 2, 3, null], 'a gap is null')
    t.same(json.series.cpu_pct.max, json.series.cpu_pct.avg)
    t.equal(json.series.mem_used_bytes.avg.length, 121)
  })

  t.test('a time is epoch seconds, or RFC 3339', async (t) => {
    const [from, to] = [bucketStart - 60, bucketStart]
    for (const query of [
      { from, to },
      { from: iso(from), to: iso(to) },
      { from: iso(from).replace('.000', ''), to: `${to}.000` },
      { from: iso(from).replace('Z', '+00:00'), to },
    ]) {
      const { json } = await get(query)
      t.same(json.buckets, [from, from + 30], JSON.stringify(query))
      t.same(json.series.cpu_pct.avg, [2, 3])
    }
    t.match((await get({ to: now - DAY })).json, { from: iso(now - DAY - HOUR), to: iso(now - DAY) })
    for (const text of [
      ...['yesterday', '-5', '0x10', '1e9', '', ' 1', '2030-06-10', '2030-06-10T12:00:00'],
      ...['2030-06-10T12:00:00+0200', '2030-13-10T12:00:00Z', '2030-02-30T12:00:00Z', '9'.repeat(20)],
    ])
      for (const name of ['from', 'to']) {
        const { status, json } = await get({ [name]: text })
        t.equal(status, 400, `${name}=${text}`)
        t.match(json, {
          error: 'bad_request',
          message: `${name} must be RFC 3339 with Z or an offset, such as 2026-01-31T03:14:00Z, or epoch seconds`,
        })
      }
    t.match((await api('GET', `/boxes/${box.id}/metrics?from=1&from=2`)).json, {
      message: 'from must be given only once',
    })
    t.match((await get({ from: now, to: now })).json, {
      error: 'bad_request',
      message: /from must be before to/,
    })
    t.match((await get({ from: now + 60 })).json, {
      error: 'bad_request',
      message: /from must be in the past/,
    })
  })

  t.test('the buckets contain the range, and their length follows from its span', async (t) => {
    for (const [span, res] of [
      [1, 30],
      [6 * HOUR, 30],
      [6 * HOUR + 1, 300],
      [3 * DAY, 300],
      [3 * DAY + 1, 3600],
      [30 * DAY, 3600],
    ] as const) {
      const { json } = await get({ from: now - span, to: now })
      t.equal(json.res, res, `${span} s`)
      t.equal(json.buckets[0], Math.floor((now - span) / res) * res)
      t.ok(json.buckets.at(-1) < now && json.buckets.at(-1) + res >= now)
      t.equal(json.series.cpu_pct.avg.length, json.buckets.length)
    }
    t.same((await get({ from: bucketStart - 31, to: bucketStart - 29 })).json.series.cpu_pct.avg, [2, 3])
    t.same((await get({ from: bucketStart - 30, to: bucketStart })).json.series.cpu_pct.avg, [3])
    const rollup = (await get({ from: now - DAY })).json.series.cpu_pct
    t.same([rollup.avg.at(-2), rollup.max.at(-2)], [2, 3], 'samples of the current hour are included')
  })

  t.test('a range is limited to the last 30 days', async (t) => {
    const limited = (await get({ from: 0, to: now + DAY })).json
    t.match(limited, { from: iso(now - 30 * DAY), to: iso(now), res: 3600 })
    t.equal(limited.buckets.length, 30 * 24 + 1)
    for (const [from, to] of [
      [now - 40 * DAY, now - 31 * DAY],
      [now + DAY, now + 2 * DAY],
    ]) {
      const { status, json } = await get({ from: from ?? 0, to: to ?? 0 })
      t.equal(status, 200)
      t.same([json.buckets, json.series.cpu_pct.avg], [[], []], 'outside of the retention')
    }
  })

  t.test('the CPU of several boxes has a value for every five minutes of the last hour', async (t) => {
    const idle = (await api('POST', '/boxes', { name: 'kiwi' })).json.box
    const list = (boxes: string, key?: string) =>
      api('GET', `/metrics/cpu?boxes=${boxes}`, undefined, key === undefined ? {} : { key })
    const { status, json } = await list(`${box.id},${idle.id},${box.id},${crypto.randomUUID()}`)
    t.equal(status, 200)
    t.equal(json.res, 300)
    t.same(Object.keys(json.boxes).sort(), [box.id, idle.id].sort(), 'an unknown box is not in it')
    const values = json.boxes[box.id]
    t.equal(values.length, 12)
    t.equal(Date.parse(json.from) / 1000 + 12 * 300, Math.ceil(now / 300) * 300)
    t.same(values.slice(0, -2), new Array(10).fill(null))
    t.same(values.slice(-2), [2, null], 'the mean of 1, 2 and 3')
    t.same(json.boxes[idle.id], new Array(12).fill(null))
    const ofOther = await createLimitedKey(coordinator, { boxIds: [idle.id] })
    t.same(Object.keys((await list(`${box.id},${idle.id}`, ofOther)).json.boxes), [idle.id])
    const none = await createLimitedKey(coordinator, { access: { workspace: 'write' } })
    t.match((await list(box.id, none)).json, { error: 'key_access_denied', area: 'boxes', level: 'read' })
    for (const wrong of ['', 'fig', `${box.id},`, new Array(101).fill(box.id).join()])
      t.match(await list(wrong), { status: 400, json: { error: 'bad_request', message: /^boxes must / } })
  })

  t.test('access', async (t) => {
    const other = (await api('POST', '/boxes', { name: 'plum' })).json.box
    const ofBox = await createLimitedKey(coordinator, { boxIds: [box.id] })
    const ofOther = await createLimitedKey(coordinator, { boxIds: [other.id] })
    const readOnly = await createLimitedKey(coordinator, { access: { boxes: 'read' } })
    const none = await createLimitedKey(coordinator, { access: { workspace: 'write' } })
    t.equal((await get({}, ofBox)).status, 200)
    t.equal((await get({}, readOnly)).status, 200)
    t.equal((await get({}, ofOther)).status, 404)
    t.match((await get({}, none)).json, { error: 'key_access_denied', area: 'boxes', level: 'read' })
    t.equal((await api('GET', `/boxes/${crypto.randomUUID()}/metrics`)).status, 404)
    t.equal((await api('GET', '/boxes/fig/metrics')).status, 404)
    await db
      .insertInto('workspaces')
      .values({ id: 'ws_other', name: 'other', zero_data_retention: 0, created_at: 0 })
      .execute()
    await db.updateTable('boxes').set({ workspace_id: 'ws_other' }).where('id', '=', other.id).execute()
    t.equal((await api('GET', `/boxes/${other.id}/metrics`)).status, 404, 'a box of another workspace')
  })

  t.test('a suspended and a deleted box keep their metrics', async (t) => {
    const hasSamples = async () => (await get()).json.series.cpu_pct.avg.includes(3)
    await api('POST', `/boxes/${box.id}/suspend`)
    await coordinator.waitForState(box.id, 'suspended')
    t.ok(await hasSamples())
    await api('DELETE', `/boxes/${box.id}`)
    await coordinator.waitForState(box.id, 'terminated')
    t.ok(await hasSamples())
  })
})
