// Starts a coordinator with a real box on this machine, for tests over HTTP.

import type { Test } from 'tap'
import {
  type CoordinatorOptions,
  type RequestOptions,
  startTestCoordinator,
  type TestCoordinator,
} from '../support/coordinator.ts'
import { limitsEnv } from '../support/limits-env.ts'

/** Limits that only tests of the limits themselves reach. */
export const HIGH_EDGE_LIMITS = { edgeRequestsPerSecond: 10_000, edgeConcurrency: 1000 }

export type CoordinatorWithBox = TestCoordinator & {
  box: { id: string; hostname: string }
  /** Requests an edge route of the box: boxRequest('POST', '/exec', {command: 'id'}). */
  boxRequest: (
    method: string,
    path: string,
    body?: unknown,
    options?: RequestOptions,
  ) => ReturnType<TestCoordinator['send']>
  /** Runs a command on the box, and returns the response body. */
  exec: (command: string, options?: object) => Promise<Record<string, unknown>>
}

/** @param onListening called when the coordinator listens, before the box runs */
export async function startCoordinatorWithBox(
  t: Test,
  options: CoordinatorOptions = {},
  onListening: (url: string) => void = () => undefined,
): Promise<CoordinatorWithBox> {
  const coordinator = await startTestCoordinator(t, {
    machines: 'local',
    env: limitsEnv(HIGH_EDGE_LIMITS),
    ...options,
  })
  onListening(coordinator.url)
  const { json } = await coordinator.api('GET', '/boxes')
  const box = json.boxes[0]
  await coordinator.waitForState(box.id, 'running')
  const boxRequest: CoordinatorWithBox['boxRequest'] = (method, path, body, options) =>
    coordinator.edge(box.hostname, method, path, body, options)
  return {
    ...coordinator,
    box,
    boxRequest,
    exec: async (command, options = {}) => (await boxRequest('POST', '/exec', { command, ...options })).json,
  }
}
