// The proxy in front of a coordinator under test: none, or nginx or Caddy with a path in a run behind a proxy (behind-proxy.ts).
import type { Test } from 'tap'
import { type ProxyName, startProxy } from '../install/start-proxy.ts'
import { startTunnelProxy } from './tunnel-proxy.ts'

/** The proxy of the run; undefined: none. */
export const getFrontProxyName = (): ProxyName | undefined =>
  process.env.BOXWOOD_TEST_PROXY as ProxyName | undefined

/** Starts the proxy of the run; null: none. The proxy gets its target after the start: the coordinator gets the URL first. */
export async function startFrontProxy(t: Test) {
  const name = getFrontProxyName()
  if (name === undefined) return null
  let port = 0
  const forwarder = await startTunnelProxy(() => port)
  t.teardown(() => forwarder.close())
  const { url } = await startProxy(t, name, new URL(forwarder.url).host, true)
  return {
    url,
    env: { BOXWOOD_PUBLIC_URL: url, BOXWOOD_TRUSTED_PROXIES: '127.0.0.1' },
    setTarget(coordinatorUrl: string) {
      port = Number(new URL(coordinatorUrl).port)
    },
  }
}
