// The link between box and coordinator, reset or half-open (its bytes vanish), in the middle of a command, a
// download and an upload: the client is told, nothing short is taken for whole, and the box comes back.
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import type { MachineSpec, Provider } from '../../coordinator/lifecycle/provider.ts'
import { createLocalProvider } from '../../coordinator/lifecycle/providers/local/provider.ts'
import { edgeBox } from '../e2e/edge-box.ts'
import { waitUntil } from '../support/coordinator-process.ts'
import { PROJECT } from '../support/project.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { startTunnelProxy, type TunnelProxy } from '../support/tunnel-proxy.ts'

const MiB = 1024 * 1024

/** A box that reaches its coordinator through a proxy that can cut the link. */
async function boxBehindProxy(t: Test) {
  const dataDir = createTempDir(t, 'cut')
  const proxied = Promise.withResolvers<TunnelProxy>()
  const local = await createLocalProvider({
    dataDir,
    log: { info: () => undefined, warn: () => undefined },
    isolation: 'auto',
    projectRoot: PROJECT,
    coordinatorUrl: 'http://127.0.0.1:9',
    graceMs: 500,
  })
  const through = async <S extends MachineSpec>(spec: S): Promise<S> => ({
    ...spec,
    coordinatorUrl: (await proxied.promise).url,
  })
  const provider: Provider = {
    ...local,
    create: async (spec) => local.create(await through(spec)),
    start: async (spec) => local.start(await through(spec)),
  }
  const liveness = { tickMs: 50, pingEveryMs: 200, deadAfterMs: 1500 }
  const starting = edgeBox(t, { provider, dataDir, hub: { liveness, transferIdleMs: 1500 } }, (url) => {
    startTunnelProxy(Number(new URL(url).port)).then(proxied.resolve, proxied.reject)
  })
  const proxy = await proxied.promise
  t.teardown(() => proxy.close())
  return { ...(await starting), proxy }
}

for (const [how, cut] of [
  ['reset', (proxy: TunnelProxy) => proxy.reset()],
  ['half-open', (proxy: TunnelProxy) => proxy.blackhole()],
] as const)
  t.test(`a link that is ${how}`, async (t) => {
    const { exec, ask, url, key, box, proxy } = await boxBehindProxy(t)
    const headers = { authorization: `Bearer ${key}` }
    const route = `${url}/v1/box/${box.hostname}`
    /** A half-open link ends for the box too, long before its own patience does. */
    const back = async () => {
      proxy.reset()
      await waitUntil('the box is back', async () => (await exec('true')).exitCode === 0)
    }

    await t.test('during a command', async (t) => {
      const lost = ask('POST', '/exec', { command: 'touch began; sleep 20' })
      await waitUntil('it began', async () => (await exec('test -e began')).exitCode === 0)
      cut(proxy)
      t.match(await lost, { status: 502, json: { ok: false, error: { code: 'box_unreachable' } } })
      await back()
    })

    await t.test('during a download', async (t) => {
      await exec(`head -c ${64 * MiB} /dev/urandom > large`)
      const answer = await fetch(`${route}/download?path=large`, { headers })
      t.equal(answer.headers.get('content-length'), String(64 * MiB))
      const reader = answer.body?.getReader()
      await reader?.read()
      cut(proxy)
      const whole = (async () => {
        while (reader && !(await reader.read()).done);
      })()
      await t.rejects(whole, 'short is an error, not an end')
      await back()
    })

    await t.test('during an upload', async (t) => {
      await exec('echo old > target')
      const pieces = { sent: 0 }
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          if (pieces.sent === 4) cut(proxy)
          pieces.sent += 1
          controller.enqueue(randomBytes(MiB))
          await new Promise((resolve) => setTimeout(resolve, 5))
        },
      })
      const answer = await fetch(`${route}/upload?path=target`, {
        method: 'PUT',
        headers,
        body,
        duplex: 'half',
      } as RequestInit).then(
        ({ status }) => status,
        () => 'cut',
      )
      t.ok(answer === 502 || answer === 'cut', `answered ${answer}`)
      await back()
      t.match(await exec('cat target; ls -A | grep -c boxwood-write'), { stdout: /^old\n/ })
    })
  })
