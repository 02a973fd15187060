// A coordinator over HTTP with one box whose agent is a function of the test.
import type { Test } from 'tap'
import type {
  Streams,
  Tunnel,
  TunnelRequest,
  TunnelResponse,
  Tunnels,
} from '../../coordinator/tunnel/types.ts'
import { startTestCoordinator } from './coordinator.ts'
import { FakeInfrastructure } from './fake-provider.ts'

export type AgentHandler = (request: TunnelRequest) => Promise<TunnelResponse>

export type ScriptedBoxOptions = { env?: Record<string, string>; streams?: Streams }

/** @param handle gets every request to the agent */
export async function startScriptedBox(t: Test, handle: AgentHandler, options: ScriptedBoxOptions = {}) {
  const infra = new FakeInfrastructure()
  // Like a real tunnel: aborting destroys the response body with an error.
  const request: AgentHandler = async (request) => {
    const response = await handle(request)
    request.signal?.addEventListener('abort', () => response.body.destroy(request.signal?.reason))
    response.body.on('error', () => undefined)
    return response
  }
  const withScript = (tunnel: Tunnel): Tunnel => ({ ...tunnel, request })
  const tunnels: Tunnels = {
    ...infra.tunnels,
    current(boxId) {
      const tunnel = infra.tunnels.current(boxId)
      return tunnel && withScript(tunnel)
    },
    wait: async (...args) => withScript(await infra.tunnels.wait(...args)),
  }
  const coordinator = await startTestCoordinator(t, { infra, tunnels, ...options })
  const { json } = await coordinator.api('GET', '/boxes')
  const box: { id: string; hostname: string } = json.boxes[0]
  await coordinator.waitForState(box.id, 'running')
  return { ...coordinator, box, acquiredSlots: coordinator.coordinator.context.edge.limiter.acquiredCount }
}
