// The roles of a workspace as the API returns them.
import type { AwsRole } from '../../../shared/api/federation.ts'
import { toTimestamp, toTimestampOrNull } from '../../../shared/clock.ts'
import type { AwsRoleRow } from '../../db/schema.ts'
import type { VerifyResult } from './parse-sts-response.ts'

export const presentRole = (row: AwsRoleRow): AwsRole => ({
  id: row.id,
  roleArn: row.role_arn,
  profile: row.profile,
  verifiedAt: toTimestampOrNull(row.verified_at),
  verifiedArn: row.verified_arn,
  verifyError: row.verify_error,
  createdAt: toTimestamp(row.created_at),
  createdBy: row.created_by,
})

/** The columns of a verification. */
export const toVerification = (
  result: VerifyResult,
  now: number,
): Pick<AwsRoleRow, 'verified_at' | 'verified_arn' | 'verify_error'> =>
  'arn' in result
    ? { verified_at: now, verified_arn: result.arn, verify_error: null }
    : { verified_at: null, verified_arn: null, verify_error: result.error }
