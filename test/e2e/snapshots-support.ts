// Requests on snapshots that several tests share.
import type { TestCoordinator } from '../support/coordinator.ts'
import { waitUntil } from '../support/wait-until.ts'

type Coordinator = Pick<TestCoordinator, 'api' | 'waitForState'>

/** Creates a running box. Returns its id. */
export async function createRunningBox(
  { api, waitForState }: Coordinator,
  body: object = {},
): Promise<string> {
  const { status, json } = await api('POST', '/boxes', body)
  if (status !== 202) throw new Error(`POST /boxes responded with ${status}: ${JSON.stringify(json)}`)
  await waitForState(json.box.id, 'running')
  return json.box.id
}

/** The snapshot in the list, also a transient one; undefined: not in the list. */
export async function findSnapshot({ api }: Pick<Coordinator, 'api'>, id: string) {
  const { json } = await api('GET', '/snapshots?transient=1')
  return json.snapshots.find((snapshot: { id: string }) => snapshot.id === id)
}

export const waitForStatus = (coordinator: Coordinator, id: string, status: string) =>
  waitUntil(`snapshot ${id} is ${status}`, async () => {
    const snapshot = await findSnapshot(coordinator, id)
    return snapshot?.status === status && snapshot
  })

export const waitUntilAbsent = (coordinator: Coordinator, id: string) =>
  waitUntil(`snapshot ${id} is deleted`, async () => (await findSnapshot(coordinator, id)) === undefined)

/** Takes a snapshot and waits until it is available. Returns its id. */
export async function takeSnapshot(coordinator: Coordinator, boxId: string, name = 'first'): Promise<string> {
  const { json } = await coordinator.api('POST', '/snapshots', { boxId, name })
  await waitForStatus(coordinator, json.snapshot.id, 'available')
  return json.snapshot.id
}
