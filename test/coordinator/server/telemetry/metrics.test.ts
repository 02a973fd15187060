// The values of the metrics after requests, jobs and reports.

import { request } from 'node:http'
import t from 'tap'
import { createBoxCounts } from '../../../../coordinator/boxes/lifecycle/box-counts.ts'
import { createDiskMetric } from '../../../../coordinator/boxes/lifecycle/disk-metric.ts'
import { createPrometheusMetrics } from '../../../../coordinator/server/telemetry/prometheus/prometheus-metrics.ts'
import { BOX_SERIES } from '../../../../shared/api/metrics.ts'
import { durableReportSchema } from '../../../../shared/api/reports.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { startTestCoordinator } from '../../../support/coordinator.ts'
import { limitsEnv } from '../../../support/limits-env.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { fetchMetrics, parseMetrics, sumSamples } from './read-metrics.ts'

const env = { BOXWOOD_METRICS_LISTEN: '127.0.0.1:0' }

t.test('counts requests by route, and its labels do not depend on what clients send', async (t) => {
  const coordinator = await startTestCoordinator(t, {
    env: { ...limitsEnv({ edgeRequestsPerSecond: 10_000 }), ...env },
  })
  const { metricsUrl } = coordinator.instance
  const [first] = (await coordinator.api('GET', '/boxes')).json.boxes
  await coordinator.waitForState(first.id, 'running')
  const send = (method: string, path: string) =>
    new Promise<void>((resolve, reject) => {
      const headers = { authorization: `Bearer ${coordinator.key}` }
      request(coordinator.url + path, { method, headers }, (response) => {
        response.resume()
        response.once('close', resolve)
      })
        .once('error', reject)
        .end()
    })
  const countSeries = async () =>
    (await fetchMetrics(metricsUrl)).filter(({ name }) => name.startsWith('boxwood_')).length
  const sendOddRequests = async (from: number) => {
    for (let i = from; i < from + 20; i++) {
      await send('GET', `/api/v1/boxes/00000000-0000-4000-8000-0000000000${10 + i}`)
      await send('GET', `/v1/box/name${i}/exec`)
      await send('GET', `/api/v1/nothing${i}?a=${i}`)
      await send('GET', `/nothing${i}`)
      await send('GET', `/v1/box/%ff${i}/files`)
      await send('DELETE', `/api/v1/boxes?i=${i}`)
    }
    for (const method of ['PROPFIND', 'MKCOL', 'REPORT', 'PURGE', 'SEARCH', 'LOCK'].slice(from % 3))
      await send(method, '/api/v1/boxes')
  }
  await sendOddRequests(0)
  const before = await countSeries()
  await sendOddRequests(20)
  await sendOddRequests(40)
  t.equal(await countSeries(), before, 'other ids, names and paths add no series')

  const samples = await fetchMetrics(metricsUrl)
  const count = (labels: Record<string, string>) => sumSamples(samples, 'boxwood_http_requests_total', labels)
  t.equal(count({ host: 'control', method: 'GET', route: '/api/v1/boxes/:id', status: '404' }), 60)
  t.equal(count({ host: 'edge', method: 'GET', route: '/v1/box/:box/exec', status: '404' }), 60)
  t.equal(count({ host: 'control', method: 'GET', route: 'unknown', status: '404' }), 60)
  t.equal(count({ host: 'public', route: 'unknown', status: '404' }), 60)
  t.equal(count({ host: 'edge', route: 'unknown', status: '400' }), 60, 'an undecodable path')
  t.equal(count({ host: 'control', method: 'DELETE', route: 'unknown', status: '405' }), 60)
  t.ok(count({ method: 'other' }) >= 12, 'unusual methods share a label')
  t.equal(
    sumSamples(samples, 'boxwood_http_request_duration_seconds_count', { route: '/v1/box/:box/exec' }),
    60,
  )
  t.equal(sumSamples(samples, 'boxwood_http_requests_in_flight'), 0)
  t.ok(sumSamples(samples, 'boxwood_http_received_bytes_total', { peer: 'client' }) > 60 * 50)
  t.ok(sumSamples(samples, 'boxwood_http_sent_bytes_total', { peer: 'client' }) > 60 * 50)
})

t.test('a client that disconnects before the response counts as status 499', async (t) => {
  const coordinator = await startTestCoordinator(t, { env })
  const { metricsUrl } = coordinator.instance
  // The response waits for the body.
  const aborted = request(`${coordinator.url}/api/v1/boxes`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${coordinator.key}`,
      'content-type': 'application/json',
      'content-length': 100,
    },
  })
  aborted.once('error', () => undefined)
  aborted.write('{')
  await waitUntil(
    'the request is in flight',
    async () =>
      sumSamples(await fetchMetrics(metricsUrl), 'boxwood_http_requests_in_flight', { host: 'control' }) ===
      1,
  )
  aborted.destroy()
  await waitUntil('the request is counted', async () => {
    const labels = { route: '/api/v1/boxes', method: 'POST', status: '499' }
    return sumSamples(await fetchMetrics(metricsUrl), 'boxwood_http_requests_total', labels) === 1
  })
})

t.test('measures lifecycle jobs, their failures and the boxes in each state', async (t) => {
  const coordinator = await startTestCoordinator(t, { env, lifecycle: { backoff: () => 1 } })
  const { metricsUrl } = coordinator.instance
  const [first] = (await coordinator.api('GET', '/boxes')).json.boxes
  await coordinator.waitForState(first.id, 'running')
  coordinator.infra.before.start = () => {
    delete coordinator.infra.before.start
    throw new Error('no space')
  }
  const { json } = await coordinator.api('POST', '/boxes', { name: 'fig' })
  await coordinator.waitForState(json.box.id, 'running')
  const samples = await fetchMetrics(metricsUrl)
  const stepCount = (labels: Record<string, string>) =>
    sumSamples(samples, 'boxwood_job_step_duration_seconds_count', { op: 'create', ...labels })
  t.equal(stepCount({ step: 'start', outcome: 'failed' }), 1)
  t.equal(stepCount({ step: 'start', outcome: 'completed' }), 2)
  t.equal(
    sumSamples(samples, 'boxwood_job_step_failures_total', { op: 'create', step: 'start', retry: 'yes' }),
    1,
  )
  t.equal(sumSamples(samples, 'boxwood_job_steps_running'), 0)
  t.equal(sumSamples(samples, 'boxwood_job_duration_seconds_count', { op: 'create' }), 2)
  t.equal(sumSamples(samples, 'boxwood_boxes', { state: 'running', source: 'database' }), 2)
  t.equal(sumSamples(samples, 'boxwood_boxes'), 2, 'the other states are 0')
  t.equal(sumSamples(samples, 'boxwood_agents_connected'), 2)
  t.ok(sumSamples(samples, 'boxwood_store_query_duration_seconds_count', { operation: 'insert' }) > 0)
  t.ok(sumSamples(samples, 'boxwood_store_transaction_duration_seconds_count', { outcome: 'commit' }) > 0)
  t.equal(
    sumSamples(samples, 'boxwood_store_commit_duration_seconds_count'),
    sumSamples(samples, 'boxwood_store_transaction_duration_seconds_count', { outcome: 'commit' }),
  )
  t.equal(sumSamples(samples, 'boxwood_disk_reserve_released'), 0)
})

t.test('counts the requests that a limit rejected', async (t) => {
  const coordinator = await startTestCoordinator(t, {
    env: { ...limitsEnv({ edgeRequestsPerSecond: 1 }), ...env },
  })
  const statuses = await Promise.all(
    [1, 2, 3].map(async () => (await coordinator.edge('fig', 'POST', '/exec', { command: 'true' })).status),
  )
  t.same(statuses.sort(), [404, 429, 429])
  const samples = await fetchMetrics(coordinator.instance.metricsUrl)
  t.equal(sumSamples(samples, 'boxwood_edge_rejections_total', { limit: 'rate' }), 2)
})

t.test('reading the metrics often does not count the boxes often', async (t) => {
  const { registry, addMetrics } = createPrometheusMetrics(systemClock)
  let counted = 0
  const countBoxes = async () => {
    counted += 1
    if (counted === 1) throw new Error('the database is closed')
    return new Map([['running' as const, 7]])
  }
  addMetrics([createBoxCounts(countBoxes), createDiskMetric({ isReleased: true })])
  const readBoxes = async () => sumSamples(parseMetrics(await registry.metrics()), 'boxwood_boxes')
  t.equal(await readBoxes(), 0, 'a failed query does not hide the other metrics')
  for (let i = 0; i < 20; i++) t.equal(await readBoxes(), 7)
  t.equal(counted, 2, 'a failed query is repeated, a successful one is not')
  t.equal(sumSamples(parseMetrics(await registry.metrics()), 'boxwood_disk_reserve_released'), 1)
})

t.test(
  'a box with a wrong clock cannot distort the lag beyond 30 days, and a failed commit is counted',
  async (t) => {
    const { registry, observers } = createPrometheusMetrics({ now: () => 2 ** 41 })
    const ingest = observers.observeIngest({
      async apply(boxId) {
        if (boxId === 'full') throw new Error('the disk is full')
      },
      heartbeat: () => undefined,
      listeners: () => undefined,
    })
    const createBatch = (at: number) => {
      const report = { type: 'agent.started' as const, at, instanceId: 'i', bootId: 'b', agentVersion: 'v' }
      return [{ seq: 1, report }]
    }
    await ingest.apply('box', 'epoch', createBatch(0))
    await ingest.apply('box', 'epoch', createBatch(253_402_300_799_999))
    await t.rejects(ingest.apply('full', 'epoch', createBatch(0)), { message: 'the disk is full' })
    const samples = parseMetrics(await registry.metrics())
    t.equal(sumSamples(samples, 'boxwood_report_lag_seconds_count'), 2)
    t.equal(sumSamples(samples, 'boxwood_report_lag_seconds_sum'), 30 * 86_400)
    t.equal(sumSamples(samples, 'boxwood_reports_total', { type: 'agent.started' }), 2)
    t.equal(sumSamples(samples, 'boxwood_report_commit_failures_total'), 1)
  },
)

t.test('the age of each report is measured from the end of what it describes', async (t) => {
  const start = 1_767_225_600
  const now = (start + 32) * 1000
  const { registry, observers } = createPrometheusMetrics({ now: () => now })
  const ingest = observers.observeIngest({
    apply: async () => undefined,
    heartbeat: () => undefined,
    listeners: () => undefined,
  })
  const values = Object.fromEntries(Object.keys(BOX_SERIES).map((name) => [name, null]))
  const lines = [
    { type: 'metrics.sample', start, values, fs: [], ifaces: [] },
    { type: 'processes.snapshot', at: now - 3000, previousAt: null, delta: '{}' },
    { type: 'agent.started', at: now - 4000, instanceId: 'i', bootId: 'b', agentVersion: 'v' },
  ]
  const batch = lines.map((line, seq) => ({ seq, report: durableReportSchema.parse(line) }))
  await ingest.apply('box', 'epoch', batch)
  const samples = parseMetrics(await registry.metrics())
  const lag = (type: string) => sumSamples(samples, 'boxwood_report_lag_seconds_sum', { type })
  t.equal(lag('metrics.sample'), 2)
  t.equal(lag('processes.snapshot'), 3)
  t.equal(lag('agent.started'), 4)
})
