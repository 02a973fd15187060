// AWS roles in the database, for pages of a coordinator with an identity issuer. AWS is not asked.
import { newId } from '../../shared/ids.ts'
import type { TestCoordinator } from './coordinator.ts'

export const ISSUER = 'https://boxes.example.com/oidc'

/** The role of the profile `default` is verified. AWS has refused that of `audit`. */
export async function insertAwsRoles({ instance }: Pick<TestCoordinator, 'instance'>): Promise<void> {
  const { db, clock } = instance.context
  const { workspaceId, userId } = instance.owner ?? {}
  if (workspaceId === undefined || !userId) throw new Error('the coordinator has no owner')
  const now = clock.now()
  const ofOwner = { workspace_id: workspaceId, created_by: `user:${userId}`, created_at: now }
  await db
    .insertInto('aws_roles')
    .values([
      {
        ...{ id: newId('awsRole'), ...ofOwner, profile: 'default' },
        ...{ role_arn: 'arn:aws:iam::123456789012:role/deploy', verified_at: now, verify_error: null },
        verified_arn: 'arn:aws:sts::123456789012:assumed-role/deploy/boxwood-verify',
      },
      {
        ...{ id: newId('awsRole'), ...ofOwner, profile: 'audit' },
        ...{ role_arn: 'arn:aws:iam::123456789012:role/audit', verified_at: null, verified_arn: null },
        verify_error: 'AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity',
      },
    ])
    .execute()
}
