// The Idempotency-Key of a command that is started: the id of its process follows from the key, and agents start an id once.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Actor } from '../http/actor.ts'

export const startKeyHeader = z.object({
  'Idempotency-Key': z.string().optional().meta({
    description:
      'with detached or attached, else without effect: a repeated request returns the first process, as long as the box keeps it',
  }),
})

/** The id of the process. Each member has keys of their own on each box. */
export function getProcessId(
  header: string | string[],
  { actor, boxId }: { actor: Actor; boxId: string },
): string {
  const member = actor.userId ?? actor.credential.id
  const parts = JSON.stringify([boxId, actor.workspaceId, member, header])
  return `p_${createHash('sha256').update(parts).digest('hex').slice(0, 24)}`
}
