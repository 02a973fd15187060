// A coordinator with a real box on this machine, for tests of the edge over HTTP.
import type { Test } from 'tap'
import { type CoordinatorOptions, type TestCoordinator, startTestCoordinator } from '../support/coordinator.ts'

/** Above what a test asks for; tests of the limits themselves leave it out. */
export const UNLIMITED = { BOXWOOD_EDGE_RATE: '10000', BOXWOOD_EDGE_CONCURRENCY: '1000' }

export type EdgeBox = TestCoordinator & {
  box: { id: string; hostname: string }
  /** A request to the box's own routes. */
  ask: (
    method: string,
    path: string,
    body?: unknown,
    request?: Parameters<TestCoordinator['send']>[3],
  ) => ReturnType<TestCoordinator['send']>
  exec: (command: string, more?: object) => Promise<Record<string, unknown>>
}

/** @param onUrl called as soon as the coordinator listens, before the box runs */
export async function edgeBox(
  t: Test,
  options: CoordinatorOptions = {},
  onUrl: (url: string) => void = () => undefined,
): Promise<EdgeBox> {
  const coordinator = await startTestCoordinator(t, { machines: 'local', env: UNLIMITED, ...options })
  onUrl(coordinator.url)
  const { json } = await coordinator.api('GET', '/boxes')
  const box = json.boxes[0]
  await coordinator.waitForState(box.id, 'running')
  const ask: EdgeBox['ask'] = (method, path, body, request) =>
    coordinator.edge(box.hostname, method, path, body, request)
  return {
    ...coordinator,
    box,
    ask,
    exec: async (command, more = {}) => (await ask('POST', '/exec', { command, ...more })).json,
  }
}
