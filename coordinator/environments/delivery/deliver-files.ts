// Brings the secret files of the version of its environment to a box. Repeated until the coordinator has recorded it: the agent
// writes the same files again.

import type { Logger } from 'pino'
import {
  type AgentFilesRequest,
  type AgentFilesResponse,
  agentFilesResponseSchema,
} from '../../../shared/api/environment-delivery.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import type { Tunnel, Tunnels } from '../../agents/tunnel/types.ts'
import { findBox } from '../../boxes/lookups.ts'
import { updateBox } from '../../boxes/updates.ts'
import { lockBox } from '../../db/lock-box.ts'
import type { Db } from '../../db/open.ts'
import type { BoxRow } from '../../db/schema.ts'
import { transaction } from '../../db/transaction.ts'
import type { EnvironmentVersion, EnvironmentVersions } from '../types.ts'
import { isDelivered, NO_FILES, planFiles } from './plan-files.ts'
import { recordBoxEvent } from './record-event.ts'

export type FileDeliveryOptions = {
  db: Db
  clock: Clock
  log: Pick<Logger, 'warn' | 'error'>
  tunnels: Pick<Tunnels, 'local'>
  environments: EnvironmentVersions
}

/**
 * Resolves when the box has the files of its version, or an event says why it has not. Rejects when the agent does not respond.
 * One delivery at a time per box.
 */
export type DeliverFiles = (boxId: string, signal: AbortSignal) => Promise<void>

const TIMEOUT_MS = 60_000
const MAX_RESPONSE_BYTES = 1024 * 1024
const OK = 200

export function createFileDelivery(options: FileDeliveryOptions): DeliverFiles {
  const { db, clock, log, tunnels, environments } = options
  const last = new Map<string, Promise<void>>()

  const load = async (
    id: string | null,
    versionNo: number | null,
  ): Promise<EnvironmentVersion | undefined> =>
    id === null || versionNo === null ? undefined : environments.loadVersion(id, versionNo)

  /** null: the files cannot be decrypted. */
  async function createRequest(box: BoxRow): Promise<AgentFilesRequest | null> {
    const { environment_id: id, environment_version_no: pinnedNo, applied_version_no: appliedNo } = box
    const [pinned, applied] = await Promise.all([load(id, pinnedNo), load(id, appliedNo)])
    const { writes, remove } = planFiles(box, { pinned, applied })
    if (!writes || pinned === undefined) return { write: [], remove }
    try {
      const files = await environments.openFiles(pinned)
      const write = files.map(({ path, mode, content }) => ({ path, mode, contentBase64: content.reveal() }))
      return { write, remove }
    } catch (err) {
      log.error({ err, boxId: box.id }, 'failed to decrypt the files of an environment')
      return null
    }
  }

  /** Resolves to true when the box must be read again. */
  async function deliverOnce(boxId: string, signal: AbortSignal): Promise<boolean> {
    const box = await findBox(db, boxId)
    if (!box || isDelivered(box)) return false
    const request = await createRequest(box)
    if (request === null) return record(box, 'the secret files of the environment could not be decrypted')
    if (request.write.length + request.remove.length === 0) return record(box, null)
    const tunnel = tunnels.local(boxId)
    if (tunnel === undefined) throw new ApiError('box_unreachable')
    return record(box, describeFailures(await send(tunnel, request, signal)))
  }

  /** Resolves to true when the box has changed since it was read. */
  function record(box: BoxRow, failure: string | null): Promise<boolean> {
    return transaction(db, async (trx) => {
      const current = await lockBox(trx, box.id)
      if (!current || current.restricted !== box.restricted) return current !== undefined
      if (failure !== null) await recordBoxEvent(trx, current, failure, clock.now())
      const { environment_version_no: versionNo } = box
      const changes = { applied_version_no: versionNo, stale_files: NO_FILES }
      return !isDelivered(await updateBox(trx, box.id, changes))
    })
  }

  async function deliver(boxId: string, signal: AbortSignal): Promise<void> {
    for (let isOutdated = true; isOutdated; ) {
      signal.throwIfAborted()
      isOutdated = await deliverOnce(boxId, signal)
    }
  }

  return (boxId, signal) => {
    const previous = last.get(boxId) ?? Promise.resolve()
    const delivery = previous
      .catch(() => undefined)
      .then(() => deliver(boxId, signal))
      .finally(() => {
        if (last.get(boxId) === delivery) last.delete(boxId)
      })
    last.set(boxId, delivery)
    return delivery
  }
}

async function send(
  tunnel: Tunnel,
  request: AgentFilesRequest,
  signal: AbortSignal,
): Promise<AgentFilesResponse> {
  const { status, body } = await tunnel.call({
    method: 'PUT',
    path: '/environment-files',
    body: JSON.stringify(request),
    signal,
    timeoutMs: TIMEOUT_MS,
    maxBytes: () => MAX_RESPONSE_BYTES,
  })
  return (status === OK && parseResponse(body)) || failAll(request, `the agent has responded with ${status}`)
}

function parseResponse(body: Buffer): AgentFilesResponse | null {
  try {
    return agentFilesResponseSchema.parse(JSON.parse(body.toString()))
  } catch {
    return null
  }
}

const failAll = ({ write, remove }: AgentFilesRequest, message: string): AgentFilesResponse => ({
  failed: [...remove, ...write.map(({ path }) => path)].map((path) => ({ path, message })),
})

/** The messages of the agent begin with the path and end with a period. */
function describeFailures({ failed }: AgentFilesResponse): string | null {
  if (failed.length === 0) return null
  const reasons = failed.map(({ path, message }) => {
    const reason = message.replace(/\.$/, '')
    return reason.startsWith(path) ? reason : `${path}: ${reason}`
  })
  const files = failed.length === 1 ? 'a file' : `${failed.length} files`
  return `${files} of the environment could not be written or removed: ${reasons.join('; ')}`
}
