// The Idempotency-Key of a command that is started: the id of its process follows from the key, and agents start an id once.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { ApiError } from '../../shared/errors.ts'
import type { Actor } from '../http/actor.ts'
import { assertIdempotencyKey } from '../http/idempotency.ts'

export const startKeyHeader = z.object({
  'Idempotency-Key': z.string().optional().meta({
    description:
      'with detached or attached: a repeated request returns the first process, as long as the box keeps it',
  }),
})

/**
 * @param isStart whether the response is sent at the start: a command that runs to its end in the request has no process to find
 * @throws ApiError invalid_idempotency_key; invalid_request
 */
export function assertStartKey(header: string | string[], isStart: boolean): void {
  assertIdempotencyKey(header)
  if (!isStart)
    throw new ApiError('invalid_request', 'Idempotency-Key must be given together with detached or attached')
}

/** The id of the process. Each member has keys of their own on each box. */
export function getProcessId(
  header: string | string[],
  { actor, boxId }: { actor: Actor; boxId: string },
): string {
  const member = actor.userId ?? actor.credential.id
  const parts = JSON.stringify([boxId, actor.workspaceId, member, header])
  return `p_${createHash('sha256').update(parts).digest('hex').slice(0, 24)}`
}
