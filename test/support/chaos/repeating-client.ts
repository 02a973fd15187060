// A client that repeats its requests while the coordinator is being restarted, and waits for the states of boxes.
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Box, BoxDetail, ObservedState } from '../../../shared/api/boxes.ts'
import type { Snapshot } from '../../../shared/api/snapshots.ts'
import type { CoordinatorProcess } from '../coordinator-process.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../wait-until.ts'

class FinalError extends Error {}

export type RepeatingClient = ReturnType<typeof createRepeatingClient>

/** @param temporary statuses after which the request is repeated */
export function createRepeatingClient(coordinator: Pick<CoordinatorProcess, 'send'>, temporary = [502, 503]) {
  /** With the same idempotency key, a repeated request takes effect once. */
  async function request(
    method: string,
    path: string,
    body?: unknown,
    base = '/api/v1',
    // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields.
  ): Promise<any> {
    const headers = { 'content-type': 'application/json', 'idempotency-key': randomUUID() }
    const startedAt = performance.now()
    for (;;) {
      try {
        const text = body === undefined ? undefined : JSON.stringify(body)
        const response = await coordinator.send(
          method,
          base + path,
          text,
          body === undefined ? { 'idempotency-key': headers['idempotency-key'] } : headers,
        )
        const content = Buffer.concat(await response.toArray()).toString('utf8')
        const status = response.statusCode ?? 0
        if (status < 300) return JSON.parse(content)
        // 409: the first attempt is still running, or 502 and 503: the coordinator or the agent is starting.
        const isTemporary = temporary.includes(status) || content.includes('idempotency_in_progress')
        if (!isTemporary) throw new FinalError(`${method} ${path}: ${status} ${content}`)
      } catch (error) {
        if (error instanceof FinalError || performance.now() - startedAt > LONG_DEADLINE_MS) throw error
      }
      await delay(50)
    }
  }

  const post = (path: string, body?: unknown) => request('POST', path, body)
  const readDetail = (boxId: string): Promise<BoxDetail> => request('GET', `/boxes/${boxId}`)

  /** Waits until the box is in this state without a job. */
  async function settle(boxId: string, state: ObservedState): Promise<Box> {
    let last: unknown
    return waitUntil(
      `box ${boxId} is ${state}`,
      async () => {
        const { box, job, events } = await readDetail(boxId)
        if (box.observedState === 'provision_failed')
          throw new Error(`provision_failed: ${events[0]?.reason}`)
        last = { state: box.observedState, job, events: events.slice(0, 3) }
        return box.observedState === state && job === null && box
      },
      LONG_DEADLINE_MS,
    ).catch((error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(last)}`)
    })
  }

  async function waitForSnapshot(id: string): Promise<void> {
    await waitUntil(
      `snapshot ${id} is available`,
      async () => {
        const { snapshots }: { snapshots: Snapshot[] } = await request('GET', '/snapshots')
        const found = snapshots.find((snapshot) => snapshot.id === id)
        if (found?.status === 'failed') throw new Error(`the snapshot failed: ${found.error}`)
        return found?.status === 'available'
      },
      LONG_DEADLINE_MS,
    )
  }

  /** Deletes all boxes and snapshots. */
  async function deleteEverything(): Promise<void> {
    const { boxes }: { boxes: Box[] } = await request('GET', '/boxes?live=1')
    for (const { id } of boxes) await request('DELETE', `/boxes/${id}`)
    const { snapshots }: { snapshots: Snapshot[] } = await request('GET', '/snapshots?transient=1')
    for (const { id } of snapshots) await request('DELETE', `/snapshots/${id}`)
    await waitUntil(
      'everything is deleted',
      async () => {
        const live: { boxes: Box[] } = await request('GET', '/boxes?live=1')
        const kept: { snapshots: Snapshot[] } = await request('GET', '/snapshots?transient=1')
        return live.boxes.length === 0 && kept.snapshots.length === 0
      },
      LONG_DEADLINE_MS,
    )
  }

  return { request, post, readDetail, settle, waitForSnapshot, deleteEverything }
}
