// A coordinator over HTTP whose one box answers as the test says.
import type { Test } from 'tap'
import type { Tunnel, TunnelRequest, TunnelResponse, Tunnels } from '../../coordinator/tunnel/types.ts'
import { testCoordinator } from './coordinator.ts'
import { FakeWorld } from './fake-provider.ts'

export type ScriptedAnswer = (request: TunnelRequest) => Promise<TunnelResponse>

/** @param answer gets every request that reaches the box */
export async function scriptedBox(t: Test, answer: ScriptedAnswer, env: Record<string, string> = {}) {
  const world = new FakeWorld()
  // As the real one does: what is aborted is cut, and a body that is cut is an error.
  const request: ScriptedAnswer = async (asked) => {
    const response = await answer(asked)
    asked.signal?.addEventListener('abort', () => response.body.destroy(asked.signal?.reason))
    response.body.on('error', () => undefined)
    return response
  }
  const script = (tunnel: Tunnel): Tunnel => ({ ...tunnel, request })
  const tunnels: Tunnels = {
    ...world.tunnels,
    current(boxId) {
      const tunnel = world.tunnels.current(boxId)
      return tunnel && script(tunnel)
    },
    wait: async (...args) => script(await world.tunnels.wait(...args)),
  }
  const coordinator = await testCoordinator(t, { world, tunnels, env })
  const { json } = await coordinator.api('GET', '/boxes')
  const box: { id: string; hostname: string } = json.boxes[0]
  await coordinator.until(box.id, 'running')
  return { ...coordinator, box, held: coordinator.coordinator.context.edge.limiter.held }
}
