// Starts a coordinator over HTTP with one box, whose fake agent is a request handler that the test provides.
import { Readable } from 'node:stream'
import type { Test } from 'tap'
import { callByRequest } from '../../coordinator/agents/tunnel/calls.ts'
import type { Tunnel, TunnelRequest, TunnelResponse, Tunnels } from '../../coordinator/agents/tunnel/types.ts'
import { type CoordinatorOptions, startTestCoordinator } from './coordinator.ts'
import { FakeInfrastructure } from './fake-infrastructure.ts'

export type AgentHandler = (request: TunnelRequest) => Promise<TunnelResponse>

export type BoxWithFakeAgentOptions = Pick<CoordinatorOptions, 'env' | 'streams' | 'log'>

/** @param handler responds to every request to the agent, except those that send the variables of the box */
export async function startBoxWithFakeAgent(
  t: Test,
  handler: AgentHandler,
  options: BoxWithFakeAgentOptions = {},
) {
  const infra = new FakeInfrastructure()
  // Like a real tunnel: aborting destroys the response body with an error.
  const request: AgentHandler = async (request) => {
    if (request.path === '/environment') return acceptEnvironment()
    const response = await handler(request)
    request.signal?.addEventListener('abort', () => response.body.destroy(request.signal?.reason))
    response.body.on('error', () => undefined)
    return response
  }
  const call: Tunnel['call'] = (call) => callByRequest(request, call)
  const withFakeAgent = (tunnel: Tunnel): Tunnel => ({ ...tunnel, request, call })
  const tunnels: Tunnels = {
    ...infra.tunnels,
    current(boxId) {
      const tunnel = infra.tunnels.current(boxId)
      return tunnel && withFakeAgent(tunnel)
    },
    wait: async (...args) => withFakeAgent(await infra.tunnels.wait(...args)),
  }
  const coordinator = await startTestCoordinator(t, { infra, tunnels, ...options })
  const { json } = await coordinator.api('GET', '/boxes')
  const box: { id: string; hostname: string } = json.boxes[0]
  await coordinator.waitForState(box.id, 'running')
  return { ...coordinator, box, acquiredSlots: coordinator.instance.context.edge.limiter.acquiredCount }
}

const acceptEnvironment = (): TunnelResponse => ({
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: Readable.from([Buffer.from('{"broker":null}')]),
})
