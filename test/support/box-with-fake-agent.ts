// Starts a coordinator over HTTP with one box, whose fake agent is a request handler that the test provides.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { Test } from 'tap'
import { createTooLargeError } from '../../coordinator/agents/tunnel/agent-errors.ts'
import { withDeadline } from '../../coordinator/agents/tunnel/deadline.ts'
import type {
  Transfers,
  Tunnel,
  TunnelCall,
  TunnelCallResponse,
  Tunnels,
} from '../../coordinator/agents/tunnel/types.ts'
import { TUNNEL_LIMITS } from '../../shared/limits.ts'
import { type CoordinatorOptions, startTestCoordinator } from './coordinator.ts'
import { FakeInfrastructure } from './fake-infrastructure.ts'

export type AgentHandler = (request: TunnelCall) => Promise<TunnelCallResponse>

/** Calls the handler with the limits of a tunnel for the time and the size of the response. */
export const callHandler = (handler: AgentHandler, call: TunnelCall): Promise<TunnelCallResponse> =>
  withDeadline(call.timeoutMs, call.signal, async (signal) => {
    const aborted = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
    const response = await Promise.race([handler({ ...call, signal }), aborted])
    const limit = call.maxBytes?.(response.status) ?? TUNNEL_LIMITS.messageBytes
    if (response.body.length > limit) throw createTooLargeError(limit)
    return response
  })

/** The dial-back connections of downloads whose head and content the test provides. */
export const createFakeTransfers = (
  respond: () => { headers: Record<string, string>; text: string },
): Transfers => ({
  expect() {
    const { headers, text } = respond()
    const request = Object.assign(Readable.from([Buffer.from(text)]), { headers })
    const response = { writeHead: () => response, end: () => response }
    return {
      id: 'transfer',
      connection: Promise.resolve({
        request: request as unknown as IncomingMessage,
        response: response as unknown as ServerResponse,
      }),
      discard: () => void request.destroy(),
    }
  },
})

export type BoxWithFakeAgentOptions = Pick<CoordinatorOptions, 'env' | 'streams' | 'transfers' | 'log'>

/**
 * In-memory machines whose agents are the handler, for startTestCoordinator().
 * @param handler responds to every request to an agent, except those that send the variables of the box
 */
export function createFakeAgents(handler: AgentHandler): { infra: FakeInfrastructure; tunnels: Tunnels } {
  const infra = new FakeInfrastructure()
  const call: Tunnel['call'] = (call) =>
    callHandler(call.path === '/environment' ? acceptEnvironment : handler, call)
  const withFakeAgent = (tunnel: Tunnel): Tunnel => ({ ...tunnel, call })
  const tunnels: Tunnels = {
    ...infra.tunnels,
    current(boxId) {
      const tunnel = infra.tunnels.current(boxId)
      return tunnel && withFakeAgent(tunnel)
    },
    wait: async (...args) => withFakeAgent(await infra.tunnels.wait(...args)),
  }
  return { infra, tunnels }
}

/** @param handler as that of createFakeAgents() */
export async function startBoxWithFakeAgent(
  t: Test,
  handler: AgentHandler,
  options: BoxWithFakeAgentOptions = {},
) {
  const coordinator = await startTestCoordinator(t, { ...createFakeAgents(handler), ...options })
  const { json } = await coordinator.api('GET', '/boxes')
  const box: { id: string; hostname: string } = json.boxes[0]
  await coordinator.waitForState(box.id, 'running')
  return { ...coordinator, box, acquiredSlots: coordinator.instance.context.edge.limiter.acquiredCount }
}

const acceptEnvironment: AgentHandler = async () => ({ status: 200, body: Buffer.from('{"broker":null}') })
