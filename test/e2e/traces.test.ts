// OpenTelemetry traces of a coordinator process, received over OTLP/HTTP.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { isTracingRequested } from '../../coordinator/server/telemetry/is-tracing-requested.ts'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { PROJECT_DIR, START_SCRIPT } from '../support/project.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'

type Attribute = { key: string; value: { stringValue?: string; intValue?: number } }
type Span = {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  attributes: Attribute[]
  status: { code?: number }
}

const SERVER_KIND = 2
const ERROR_STATUS = 2
const HIDE_PACKAGES = join(PROJECT_DIR, 'test/fixtures/hide-telemetry-packages.ts')

/** Starts a receiver for OTLP in JSON. */
async function startReceiver(t: Test) {
  const spans: Span[] = []
  let resource: Attribute[] = []
  const bodies: string[] = []
  const server = createServer(async (request, response) => {
    const body = await text(request)
    if (request.url === '/v1/traces') {
      bodies.push(body)
      for (const entry of JSON.parse(body).resourceSpans) {
        resource = entry.resource.attributes
        for (const scope of entry.scopeSpans) spans.push(...scope.spans)
      }
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const getAttribute = (attributes: Attribute[], key: string) => {
    const value = attributes.find((attribute) => attribute.key === key)?.value
    return value?.stringValue ?? value?.intValue
  }
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    bodies,
    getAttribute: (span: Span, key: string) => getAttribute(span.attributes, key),
    getResourceAttribute: (key: string) => getAttribute(resource, key),
  }
}

t.test('a request is one trace: the span of the client, of the coordinator and of the tunnel', async (t) => {
  const receiver = await startReceiver(t)
  const coordinator = await startCoordinatorProcess(t, {
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_BSP_SCHEDULE_DELAY: '20',
  })
  const { spans, getAttribute } = receiver
  const box = await coordinator.waitForFirstBox()
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const clientSpanId = 'b7ad6b7169203331'
  const secret = 'open-sesame'
  const response = await coordinator.send(
    'POST',
    `/v1/box/${box.hostname}/exec`,
    JSON.stringify({ command: `echo ${secret} > /tmp/secret-file`, env: { TOKEN: secret } }),
    { 'content-type': 'application/json', traceparent: `00-${traceId}-${clientSpanId}-01` },
  )
  response.resume()
  t.equal(response.statusCode, 200)
  const unknown = await coordinator.send('GET', '/v1/box/no-such-box/files?path=%2Fetc%2Fshadow')
  unknown.resume()

  const root = await waitUntil('the span of the request arrives', () =>
    spans.find(({ name }) => name === 'POST /v1/box/:box/exec'),
  )
  t.equal(root.traceId, traceId, 'continues the trace of the client')
  t.equal(root.parentSpanId, clientSpanId)
  t.equal(root.kind, SERVER_KIND)
  t.equal(getAttribute(root, 'http.route'), '/v1/box/:box/exec')
  t.equal(getAttribute(root, 'http.response.status_code'), 200)
  t.equal(getAttribute(root, 'boxwood.host'), 'edge')
  const tunnel = await waitUntil('the span of the tunnel arrives', () =>
    spans.find(({ name }) => name === 'agent POST /exec'),
  )
  t.same([tunnel.traceId, tunnel.parentSpanId], [traceId, root.spanId])
  const failed = await waitUntil('the span of the unknown box arrives', () =>
    spans.find(({ name }) => name === 'GET /v1/box/:box/files'),
  )
  t.notOk(failed.parentSpanId, 'a request without traceparent starts a trace')
  t.equal(getAttribute(failed, 'http.response.status_code'), 404)
  t.not(failed.status.code, ERROR_STATUS, 'an error of the client is not an error of the coordinator')

  t.equal(receiver.getResourceAttribute('service.name'), 'boxwood')
  const everything = receiver.bodies.join('\n')
  const key = coordinator.authHeaders().authorization.slice('Bearer '.length)
  for (const text of [
    secret,
    'secret-file',
    '/etc/shadow',
    'shadow',
    key,
    'no-such-box',
    coordinator.dataDir,
  ])
    t.notOk(everything.includes(text), `no span contains ${text === key ? 'the key' : text}`)
})

t.test('the steps of a job belong to the trace of the request that started the job', async (t) => {
  const receiver = await startReceiver(t)
  const coordinator = await startCoordinatorProcess(t, {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/v1/traces`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_BSP_SCHEDULE_DELAY: '20',
    OTEL_SERVICE_NAME: 'boxes-of-the-team',
  })
  const { box } = await coordinator.sendJson('POST', '/api/v1/boxes', { name: 'fig' })
  await coordinator.waitForState(box.id, 'running')
  const { spans, getAttribute } = receiver
  const root = await waitUntil('the span of the request arrives', () =>
    spans.find(({ name }) => name === 'POST /api/v1/boxes'),
  )
  for (const step of ['provision', 'start', 'connect']) {
    const span = await waitUntil(`the span of the step ${step} arrives`, () =>
      spans.find(
        (span) => span.name === `create: ${step}` && getAttribute(span, 'boxwood.box.id') === box.id,
      ),
    )
    t.same([span.traceId, span.parentSpanId], [root.traceId, root.spanId], step)
    t.equal(getAttribute(span, 'boxwood.job.attempt'), 1)
  }
  t.equal(receiver.getResourceAttribute('service.name'), 'boxes-of-the-team')
})

t.test('a receiver that does not respond affects neither requests nor the stop', async (t) => {
  const silent = createServer(() => undefined).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => {
    silent.closeAllConnections()
    silent.close()
  })
  const coordinator = await startCoordinatorProcess(t, {
    BOXWOOD_LOG: 'silent',
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(silent.address() as AddressInfo).port}`,
  })
  const box = await coordinator.waitForFirstBox()
  t.match(await coordinator.exec(box.hostname, 'echo out'), { status: 200, stdout: 'out\n' })
  await coordinator.kill('SIGTERM')
  t.pass('the coordinator exits')
})

t.test('the standard variables switch traces on and off', async (t) => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }
  t.equal(isTracingRequested({}), false)
  t.equal(isTracingRequested(endpoint), true)
  t.equal(isTracingRequested({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://a/v1/traces' }), true)
  t.equal(isTracingRequested({ OTEL_TRACES_EXPORTER: 'otlp' }), true)
  t.equal(isTracingRequested({ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }), false)
  t.equal(isTracingRequested({ ...endpoint, OTEL_SDK_DISABLED: 'true' }), false)
  t.equal(isTracingRequested({ OTEL_SERVICE_NAME: 'x' }), false, 'a name alone requests nothing')
})

t.test('without configuration the packages of metrics and traces are not loaded', async (t) => {
  const coordinator = await startCoordinatorProcess(t, { NODE_OPTIONS: `--import=${HIDE_PACKAGES}` })
  t.ok(await coordinator.waitForFirstBox())
})

t.test('when the package for traces is missing, the start fails with advice', async (t) => {
  const child = spawn(join(PROJECT_DIR, START_SCRIPT), {
    cwd: PROJECT_DIR,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      ...process.env,
      BOXWOOD_DATA: createTempDir(t, 'traces'),
      BOXWOOD_LISTEN: '127.0.0.1:0',
      BOXWOOD_LOG: 'error',
      NODE_OPTIONS: `--import=${HIDE_PACKAGES}`,
      OTEL_TRACES_EXPORTER: 'otlp',
    },
  })
  t.teardown(() => child.kill('SIGKILL'))
  const [stderr, [status]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  t.equal(status, 1)
  t.match(stderr, 'package @opentelemetry/sdk-node is not installed. Run `npm install --no-save')
})
