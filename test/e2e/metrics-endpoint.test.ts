// The coordinator's metrics after commands on a real box.

import t from 'tap'
import { fetchMetrics, sumSamples } from '../coordinator/server/telemetry/read-metrics.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { waitUntil } from '../support/wait-until.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from './coordinator-with-box.ts'

t.test('the metrics have the commands of a box, its reports and its bytes', async (t) => {
  const env = { ...limitsEnv(HIGH_EDGE_LIMITS), BOXWOOD_METRICS_LISTEN: '127.0.0.1:0' }
  const { exec, instance } = await startCoordinatorWithBox(t, { env })
  for (let i = 0; i < 3; i++) await exec('head -c 20000 /dev/zero')
  const samples = await waitUntil('the reports are counted', async () => {
    const samples = await fetchMetrics(instance.metricsUrl)
    return sumSamples(samples, 'boxwood_reports_total', { type: 'command.finished' }) === 3 && samples
  })
  const sum = (name: string, labels = {}) => sumSamples(samples, name, labels)
  const route = { host: 'edge', route: '/v1/box/:box/exec', status: '200' }
  t.equal(sum('boxwood_http_requests_total', route), 3)
  const tunnelRequests = { method: 'POST', route: '/exec', outcome: 'response' }
  t.equal(sum('boxwood_tunnel_request_duration_seconds_count', tunnelRequests), 3)
  t.equal(sum('boxwood_report_lag_seconds_count', { type: 'command.finished' }), 3)
  t.ok(sum('boxwood_report_lag_seconds_sum', { type: 'command.finished' }) < 60)
  t.ok(sum('boxwood_report_commit_duration_seconds_count') >= 1)
  t.equal(sum('boxwood_agents_connected'), 1)
  t.equal(sum('boxwood_http_connections', { peer: 'agent' }), 1)
  t.ok(sum('boxwood_http_received_bytes_total', { peer: 'agent' }) > 3 * 20_000, 'the output of the commands')
  t.ok(sum('boxwood_heartbeats_total') >= 1)
})
