// The connection between box and coordinator is reset or becomes half-open during a command, a download and an upload:
// the client gets an error, a truncated body is never accepted as complete, and the box reconnects.
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { openLocalHost } from '../../coordinator/providers/local/host.ts'
import { createLocalProvider } from '../../coordinator/providers/local/provider.ts'
import type { MachineSpec, Provider } from '../../coordinator/providers/provider.ts'
import { DEFAULT_REGION } from '../../shared/tiers.ts'
import { startCoordinatorWithBox } from '../e2e/coordinator-with-box.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { startTunnelProxy, type TunnelProxy } from '../support/tunnel-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'

const MiB = 1024 * 1024

/** Starts a coordinator with a box, whose agent connects through a proxy. */
async function startBoxBehindProxy(t: Test) {
  const dataDir = createTempDir(t, 'connection-loss')
  const proxyStarted = Promise.withResolvers<TunnelProxy>()
  const host = await openLocalHost({
    dataDir,
    log: { debug: () => undefined, info: () => undefined, warn: () => undefined },
    isolation: 'auto',
    projectRoot: PROJECT_DIR,
    coordinatorUrl: 'http://127.0.0.1:9',
    graceMs: 500,
  })
  t.teardown(() => host.close())
  const local = await createLocalProvider(host, DEFAULT_REGION)
  const withProxyUrl = async <S extends MachineSpec>(spec: S): Promise<S> => ({
    ...spec,
    coordinatorUrl: (await proxyStarted.promise).url,
  })
  const provider: Provider = {
    ...local,
    create: async (spec) => local.create(await withProxyUrl(spec)),
    start: async (spec) => local.start(await withProxyUrl(spec)),
  }
  const liveness = { tickMs: 50, pingEveryMs: 200, deadAfterMs: 1500 }
  const options = { provider, dataDir, agentConnections: { liveness, transferIdleTimeoutMs: 1500 } }
  const starting = startCoordinatorWithBox(t, options, (url) => {
    startTunnelProxy(Number(new URL(url).port)).then(proxyStarted.resolve, proxyStarted.reject)
  })
  const proxy = await proxyStarted.promise
  t.teardown(() => proxy.close())
  return { ...(await starting), proxy }
}

for (const [kind, interrupt] of [
  ['reset', (proxy: TunnelProxy) => proxy.reset()],
  ['half-open', (proxy: TunnelProxy) => proxy.blackhole()],
] as const)
  t.test(`a ${kind} connection fails the requests in flight, and the box reconnects`, async (t) => {
    const { exec, boxRequest, url, key, box, proxy } = await startBoxBehindProxy(t)
    const headers = { authorization: `Bearer ${key}` }
    const route = `${url}/v1/box/${box.hostname}`
    const waitForReconnect = async () => {
      // The agent would detect a half-open connection too, but much later.
      proxy.reset()
      await waitUntil('the box has reconnected', async () => (await exec('true')).exitCode === 0)
    }

    await t.test('a running command fails with box_unreachable', async (t) => {
      const interrupted = boxRequest('POST', '/exec', { command: 'touch started; sleep 20' })
      await waitUntil('the command started', async () => (await exec('test -e started')).exitCode === 0)
      interrupt(proxy)
      t.match(await interrupted, { status: 502, json: { ok: false, error: { code: 'box_unreachable' } } })
      await waitForReconnect()
    })

    await t.test('a truncated download is an error for the client', async (t) => {
      await exec(`head -c ${64 * MiB} /dev/urandom > large`)
      const response = await fetch(`${route}/download?path=large`, { headers })
      t.equal(response.headers.get('content-length'), String(64 * MiB))
      const reader = response.body?.getReader()
      await reader?.read()
      interrupt(proxy)
      const readRest = async () => {
        while (reader && !(await reader.read()).done);
      }
      await t.rejects(readRest(), 'a truncated body is an error')
      await waitForReconnect()
    })

    await t.test('an upload that is interrupted keeps the old file', async (t) => {
      await exec('echo old > target')
      let sentChunks = 0
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          if (sentChunks === 4) interrupt(proxy)
          sentChunks += 1
          controller.enqueue(randomBytes(MiB))
          await new Promise((resolve) => setTimeout(resolve, 5))
        },
      })
      const outcome = await fetch(`${route}/upload?path=target`, {
        method: 'PUT',
        headers,
        body,
        duplex: 'half',
      } as RequestInit).then(
        ({ status }) => status,
        () => 'disconnected',
      )
      t.ok(outcome === 502 || outcome === 'disconnected', `the upload failed: ${outcome}`)
      await waitForReconnect()
      t.match(await exec('cat target; ls -A | grep -c boxwood-write'), { stdout: /^old\n/ })
    })
  })
