// Who can read the metrics, and where.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { loadConfig } from '../../../../coordinator/server/config.ts'
import { startTestCoordinator } from '../../../support/coordinator.ts'

const TOKEN = 'metrics-token-0123456789'
const LISTEN = { BOXWOOD_METRICS_LISTEN: '127.0.0.1:0' }

const get = (url: string | null, token?: string, method = 'GET') =>
  fetch(`${url}`, { method, headers: token === undefined ? {} : { authorization: `Bearer ${token}` } })

t.test('without configuration there are no metrics', async (t) => {
  const coordinator = await startTestCoordinator(t)
  t.equal(coordinator.instance.metricsUrl, null)
  const response = await get(`${coordinator.url}/metrics`, coordinator.key)
  t.equal(response.status, 404)
})

t.test('BOXWOOD_METRICS_LISTEN serves the metrics on a listener of their own only', async (t) => {
  const coordinator = await startTestCoordinator(t, { env: LISTEN })
  const { metricsUrl } = coordinator.instance
  const response = await get(`${metricsUrl}/metrics`)
  t.equal(response.status, 200)
  t.match(response.headers.get('content-type'), /^text\/plain; version=0\.0\.4/)
  t.match(await response.text(), /^# TYPE boxwood_http_requests_total counter$/m)
  const head = await get(`${metricsUrl}/metrics`, undefined, 'HEAD')
  t.same([head.status, await head.text()], [200, ''])
  t.equal((await get(`${metricsUrl}/`)).status, 404)
  t.equal((await get(`${metricsUrl}/api/v1/boxes`, coordinator.key)).status, 404, 'serves nothing else')
  t.equal((await get(`${metricsUrl}/metrics`, undefined, 'POST')).status, 405)
  t.equal((await get(`${coordinator.url}/metrics`)).status, 404, 'the main port has no metrics')
  await coordinator.close()
  await t.rejects(get(`${metricsUrl}/metrics`), 'the listener is closed with the coordinator')
})

t.test('BOXWOOD_METRICS_TOKEN serves the metrics on the main port', async (t) => {
  const coordinator = await startTestCoordinator(t, { env: { BOXWOOD_METRICS_TOKEN: TOKEN } })
  t.equal(coordinator.instance.metricsUrl, null)
  const url = `${coordinator.url}/metrics`
  const response = await get(url, TOKEN)
  t.equal(response.status, 200)
  t.match(response.headers.get('content-type'), /^text\/plain; version=0\.0\.4/)
  t.match(await response.text(), /^boxwood_build_info\{/m)
  for (const token of [undefined, '', 'x', `${TOKEN}x`, TOKEN.slice(1), coordinator.key]) {
    const rejected = await get(url, token)
    t.equal(rejected.status, 401, `token ${token}`)
    t.notMatch(await rejected.text(), 'boxwood_build_info')
  }
})

t.test('with both variables both listeners require the token', async (t) => {
  const coordinator = await startTestCoordinator(t, { env: { ...LISTEN, BOXWOOD_METRICS_TOKEN: TOKEN } })
  for (const url of [coordinator.url, coordinator.instance.metricsUrl]) {
    t.equal((await get(`${url}/metrics`)).status, 401)
    t.equal((await get(`${url}/metrics`, `${TOKEN.slice(0, -1)}0`)).status, 401)
    t.equal((await get(`${url}/metrics`, TOKEN)).status, 200)
  }
})

t.test('the metrics can be read while the coordinator drains', async (t) => {
  const coordinator = await startTestCoordinator(t, { env: { ...LISTEN, BOXWOOD_METRICS_TOKEN: TOKEN } })
  await coordinator.instance.drain(0)
  for (const url of [coordinator.url, coordinator.instance.metricsUrl])
    t.equal((await get(`${url}/metrics`, TOKEN)).status, 200)
})

t.test('a used port fails the start and the message names the variable', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const env = { BOXWOOD_METRICS_LISTEN: `127.0.0.1:${port}` }
  await t.rejects(startTestCoordinator(t, { env }), {
    message: `The coordinator cannot listen on 127.0.0.1:${port}: another program already uses this port. Stop it, or set another address in BOXWOOD_METRICS_LISTEN.`,
  })
})

t.test('invalid variables are rejected, and the message does not contain the token', async (t) => {
  t.throws(() => loadConfig({ BOXWOOD_METRICS_LISTEN: '9090' }), {
    message: 'BOXWOOD_METRICS_LISTEN must be host:port, such as 127.0.0.1:7070 or [::1]:7070; it is "9090".',
  })
  for (const token of ['short', `with space ${TOKEN}`, 'ü'.repeat(20), 'x'.repeat(257)])
    t.throws(() => loadConfig({ BOXWOOD_METRICS_TOKEN: token }), {
      message: 'BOXWOOD_METRICS_TOKEN must be 16 to 256 ASCII characters without spaces.',
    })
})
