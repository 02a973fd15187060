// Rotates the signing key at the request of an operator.
import type { RotateFederationResponse } from '../../../shared/api/federation.ts'
import { toTimestamp } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import type { Actor } from '../../http/actor.ts'
import type { SigningKeys } from './signing-keys.ts'

/** Throws aws_federation_disabled. */
export type RotateKeys = (actor: Actor) => Promise<RotateFederationResponse>

export const createRotateKeys =
  ({ keys, isEnabled }: { keys: SigningKeys; isEnabled: boolean }): RotateKeys =>
  async (actor) => {
    if (!isEnabled) throw new ApiError('aws_federation_disabled')
    const { possibleAt, ...rotation } = await keys.rotate((trx, { rotated, activeKeyId }, at) => {
      if (rotated)
        recordAuditEvent(trx, {
          kind: 'federation.rotate',
          actor,
          boxId: null,
          detail: { keyId: activeKeyId },
          at,
        })
    })
    return { ...rotation, possibleAt: toTimestamp(possibleAt) }
  }
