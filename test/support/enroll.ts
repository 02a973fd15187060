// Enrolls machines at a coordinator under test, and connects agents of them.

import { createHash, randomBytes } from 'node:crypto'
import type { JsonRouter } from '../../agent/requests/json-routes.ts'
import type { EnrollRequest } from '../../shared/api/machines.ts'
import { newBoxToken } from '../../shared/ids.ts'
import { ENROLL_PATH, LINEAGE_HEADER } from '../../shared/protocol.ts'
import type { TestCoordinator } from './coordinator.ts'
import { createTestSession } from './session.ts'
import { startTestAgent, type TestAgent } from './tunnel.ts'

const GiB = 1024 ** 3

export const hashToken = (token: string): string => createHash('sha256').update(token).digest('hex')

export const createLineageId = (): string => randomBytes(8).toString('hex')

/** Sends POST /agent/enroll. */
export async function exchange(url: string, token: string, changes: Partial<EnrollRequest> = {}) {
  const body: EnrollRequest = {
    token,
    agentTokenHash: hashToken(newBoxToken()),
    hostname: 'build-server.example.com',
    platform: 'linux-x64',
    agentVersion: '0.1.0+test',
    cpus: 4,
    memoryBytes: 8 * GiB,
    ...changes,
  }
  const response = await fetch(`${url}${ENROLL_PATH}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields.
  return { status: response.status, json: (await response.json()) as any }
}

export type EnrolledMachine = { boxId: string; name: string; token: string; lineage: string[] }

/** Sends POST /machines with a session of the owner. */
export const requestToken = async (
  coordinator: Pick<TestCoordinator, 'api' | 'instance'>,
  request: object = {},
) => coordinator.api('POST', '/machines', request, await createTestSession(coordinator))

/** Creates a token and exchanges it. No agent is connected yet. */
export async function enrollMachine(
  coordinator: Pick<TestCoordinator, 'api' | 'url' | 'instance'>,
  request: object = {},
): Promise<EnrolledMachine> {
  const created = await requestToken(coordinator, request)
  if (created.status !== 201) throw new Error(`POST /machines: ${created.text}`)
  const token = newBoxToken()
  const { status, json } = await exchange(coordinator.url, created.json.token, {
    agentTokenHash: hashToken(token),
  })
  if (status !== 201) throw new Error(`POST /agent/enroll: ${JSON.stringify(json)}`)
  return { boxId: json.boxId, name: json.name, token, lineage: [createLineageId()] }
}

/** Connects an agent of the machine, which reconnects within 50 ms. */
export const connectMachine = (
  { boxId, token, lineage }: EnrolledMachine,
  url: string,
  routes?: (router: JsonRouter) => void,
  options: Parameters<typeof startTestAgent>[3] = {},
): Promise<TestAgent> =>
  startTestAgent({ boxId, token }, url, routes, {
    readHeaders: async () => ({ [LINEAGE_HEADER]: lineage.join(',') }),
    ...options,
  })
